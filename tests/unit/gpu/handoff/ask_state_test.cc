#include "gpu/handoff/ask_state.h"

#include <gmock/gmock.h>

#include "gpu/handoff/message_bytes.h"
#include "gpu/handoff/messages.h"
#include "tests/unit/gpu/handoff/client.h"

namespace batchfs::handoff {
namespace ask_state_test {

using testing::HasSubstr;

HandoffServer::Options with_state() {
  return {.state_text = [](const HandoffServer& server, StateText what) {
    if (what == StateText::metrics) throw Error(ErrorCode::not_supported, "no metrics here");
    return std::to_string(static_cast<int>(what)) + " " +
           std::to_string(server.statistics().readers);
  }};
}

std::string message_of_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(AskState, GetsTheTextsOfAServer) {
  Served served({R"({"window": {"time": 1}, "batch": 4})"}, 64 << 20, with_state());
  const std::string& path = served.server->path();
  EXPECT_EQ(ask_state(path, StateText::status), "1 0");  // monitoring clients are not readers
  EXPECT_EQ(ask_state(path, StateText::log), "5 0");
  EXPECT_THAT(message_of_error([&] { ask_state(path, StateText::metrics); }),
              HasSubstr("no metrics here"));
  EXPECT_THAT(message_of_error([&] { ask_state(path, StateText{99}); }),
              HasSubstr("no text 99 of the state"));
  EXPECT_TRUE(eventually([&] { return is_idle(*served.server); }));
}

TEST(AskState, AReaderMayAskBetweenItsBatches) {
  Served served({R"({"window": {"time": 1}, "batch": 4})"}, 64 << 20, with_state());
  RawClient client(served.server->path());
  client.hello();
  client.expect(MessageType::welcome);
  client.send(StateMessage{{}, StateText::status, 0}, MessageType::state);
  const Received answer = client.expect(MessageType::state_text);
  EXPECT_EQ(answer.as<StateTextMessage>().length, 3u);
  EXPECT_EQ(answer.descriptors.size(), 1u);
  client.get(1, 0);
  client.expect(MessageType::batch);
}

TEST(AskState, AServerWithoutTextsRefuses) {
  Served served;
  EXPECT_THAT(message_of_error([&] { ask_state(served.server->path(), StateText::status); }),
              HasSubstr("name the mount's directory"));
}

TEST(AskState, WhereNobodyListens) {
  EXPECT_THAT(message_of_error([] { ask_state("/nowhere/socket", StateText::status); }),
              HasSubstr("batchfs serve"));
}

/// A socket that sends this answer to its one client.
class Impostor {
 public:
  Impostor(std::vector<std::byte> answer, int descriptor)
      : directory_(temporary_directory()), listener_(directory_ + "/s"), thread_([=, this] {
          pollfd waiting{listener_.fd(), POLLIN, 0};
          ::poll(&waiting, 1, 10'000);
          const Descriptor visitor(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
          ReceivedMessage question;
          receive_message(visitor.get(), kMaxMessage, question);
          if (answer.empty()) return;
          const std::vector<int> descriptors(descriptor >= 0 ? 1 : 0, descriptor);
          send_message(visitor.get(), answer, descriptors);
        }) {}
  ~Impostor() {
    thread_.join();
    ::unlink((directory_ + "/s").c_str());
    ::rmdir(directory_.c_str());
  }
  std::string answer() {
    return message_of_error([&] { ask_state(directory_ + "/s", StateText::status); });
  }

 private:
  const std::string directory_;
  Listener listener_;
  std::thread thread_;
};

std::vector<std::byte> text_message(std::uint64_t length, StateText what = StateText::status) {
  return message_of(StateTextMessage{{}, what, 0, length}, MessageType::state_text);
}

TEST(AskState, AnswersThatMakeNoSenseAreErrors) {
  const MemoryFile file = MemoryFiles(false).create("text", 10);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor in(ends[0]), out(ends[1]);
  for (const auto& [answer, descriptor] : {std::pair{text_message(5000), file.fd()},
                                           {text_message(UINT64_MAX), file.fd()},
                                           {text_message(10), -1},
                                           {text_message(10), in.get()},
                                           {text_message(10, StateText::log), file.fd()},
                                           {std::vector<std::byte>(), -1},
                                           {std::vector<std::byte>(3), -1},
                                           {std::vector<std::byte>(100), -1},
                                           {message_of(EndMessage{}, MessageType::end), -1}})
    EXPECT_THAT(Impostor(answer, descriptor).answer(), HasSubstr("not that of a batchfs process"));
}

TEST(AskState, AnOlderServerIsNamed) {
  const auto refused =
      message_of(RefusedMessage{}, MessageType::refused,
                 Error(ErrorCode::invalid_argument, "the first message is not Hello"));
  EXPECT_THAT(Impostor(refused, -1).answer(), HasSubstr("older batchfs"));
}

}  // namespace ask_state_test
}  // namespace batchfs::handoff
