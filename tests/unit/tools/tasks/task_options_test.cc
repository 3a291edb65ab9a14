#include "tools/tasks/task_options.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tools/cli/command.h"

namespace batchfs {
namespace task_options_test {

TaskOptions parse(std::vector<std::string> arguments) {
  CLI::App app;
  TaskOptions options;
  add_output_folder_option(app, options);
  add_task_options(app, options);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  return options;
}

TEST(TaskOptions, AreParsed) {
  const TaskOptions options = parse({"--out", "copy", "--task", "3", "--tasks", "4", "--json"});
  EXPECT_EQ(options.output, "copy");
  EXPECT_EQ(options.task, 3);
  EXPECT_EQ(options.tasks, 4);
  EXPECT_TRUE(options.json);
  EXPECT_NO_THROW(check_task(options));
  EXPECT_EQ(parse({"-o", "copy"}).tasks, 1);
}

TEST(TaskOptions, OthersAreWrongUsage) {
  EXPECT_THROW(parse({}), CLI::RequiredError);
  EXPECT_THROW(parse({"-o", "copy", "--tasks", "0"}), CLI::ValidationError);
  EXPECT_THROW(parse({"-o", "copy", "--task", "-1"}), CLI::ValidationError);
  EXPECT_THROW(check_task({.task = 4, .tasks = 4}), UsageError);
}

TEST(TaskOptions, AnInterruptedCommandFlushesAndSaysHowToContinue) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Output output(ends[1]);
  output.write("{}\n");
  try {
    end_interrupted(output, "copy.zarr");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
    EXPECT_EQ(error.where(), "copy.zarr");
  }
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, sizeof text), 3);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace task_options_test
}  // namespace batchfs
