#include "tools/service/generations/served_generations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/base/json.h"
#include "fs/generations/generations.h"
#include "fs/session_state.h"
#include "gpu/handoff/host_delivery.h"
#include "tests/unit/gpu/handoff/client.h"
#include "tests/unit/tools/service/generations/growing_store.h"
#include "tools/service/generations/first_generation.h"

namespace batchfs {
namespace served_generations_test {

class ServedGenerationsTest : public testing::Test {
 protected:
  ServedGenerationsTest() {
    auto first = first_generation(options(), engine_, log_);
    first->begin(fd_);
    server_ = std::make_unique<handoff::HandoffServer>(
        handoff::HandoffServer::Options{.views = first->views,
                                        .deliveries = {&host_},
                                        .refresh =
                                            [this](bool force, handoff::Refreshed done) {
                                              try {
                                                done(generations_->refresh(force), nullptr);
                                              } catch (...) {
                                                done("", std::current_exception());
                                              }
                                            },
                                        .held = first},
        handoff::Listener(store_.folder() + "/socket"), log_);
    generations_.emplace(std::exchange(first, nullptr),
                         ServedGenerations::Environment{.options = options(),
                                                        .engine = engine_,
                                                        .handoff = *server_,
                                                        .log = log_,
                                                        .check = [](Generation&) {}});
  }
  ~ServedGenerationsTest() override {
    server_ = nullptr;
    ::close(fd_);
  }
  GenerationOptions options() const {
    GenerationOptions options = store_.options();
    options.session = fd_;
    return options;
  }

  /// The number of the view's batches that a newly connected reader gets.
  std::int64_t batches(handoff::RawClient& client) {
    client.hello("v");
    return client.expect(handoff::MessageType::welcome).as<handoff::WelcomeMessage>().batches;
  }
  handoff::Received refresh() {
    handoff::RawClient client(server_->path());
    handoff::Header request{sizeof request, handoff::MessageType::refresh, handoff::kVersion};
    client.send_bytes(&request, sizeof request);
    return client.receive().value();
  }

  GrowingStore store_;
  Log log_;
  const int fd_ = SessionState::create();
  Engine engine_{{.threads = 2, .memory = 64 << 20}, log_};
  handoff::HostDelivery host_{engine_};
  std::unique_ptr<handoff::HandoffServer> server_;
  std::optional<ServedGenerations> generations_;
};

TEST_F(ServedGenerationsTest, ReadersThatConnectLaterSeeTheNewSteps) {
  handoff::RawClient early(server_->path());
  EXPECT_EQ(batches(early), 2);
  store_.grow_to(10);
  const handoff::Received answer = refresh();
  ASSERT_EQ(answer.type(), handoff::MessageType::refreshed);
  EXPECT_NE(std::string(reinterpret_cast<const char*>(answer.bytes.data()), answer.bytes.size())
                .find("\"batches_before\""),
            std::string::npos);
  handoff::RawClient late(server_->path());
  EXPECT_EQ(batches(late), 5);
  EXPECT_TRUE(generations_->sweep());  // the early reader has the older one
}

TEST_F(ServedGenerationsTest, AForcedOneReadsWhatSeemsUnchanged) {
  EXPECT_EQ(parse_json(generations_->refresh(), "").at("changed"), false);
  const auto before = generations_->newest();
  EXPECT_EQ(parse_json(generations_->refresh(true), "").at("changed"), true);
  EXPECT_NE(generations_->newest(), before);
  EXPECT_EQ(generations_->newest()->identity(), before->identity());
}

TEST_F(ServedGenerationsTest, TheSessionsStateNamesTheNewest) {
  const SessionState state(fd_);
  EXPECT_EQ(state.reading().number, generations_->newest()->number);
  store_.grow_to(6);
  generations_->refresh();
  EXPECT_EQ(state.reading().number, 2u);
  EXPECT_EQ(state.reading().identity, generations_->newest()->identity());
  EXPECT_EQ(state.reading().version_slot, generations_->newest()->versions.slot);
  store_.remove_array();
  EXPECT_THROW(generations_->refresh(), Error);
  EXPECT_EQ(state.reading().number, 2u);
}

TEST_F(ServedGenerationsTest, OlderOnesGoWithTheirReaders) {
  {
    handoff::RawClient early(server_->path());
    EXPECT_EQ(batches(early), 2);
    store_.grow_to(6);
    generations_->refresh();
    EXPECT_TRUE(generations_->sweep());
  }
  EXPECT_TRUE(eventually([this] { return !generations_->sweep(); }));
}

TEST_F(ServedGenerationsTest, AFailureIsRefused) {
  store_.remove_array();
  EXPECT_EQ(refresh().type(), handoff::MessageType::refused);
  handoff::RawClient reader(server_->path());
  EXPECT_EQ(batches(reader), 2);
}

TEST_F(ServedGenerationsTest, TooManyInUseAreRefused) {
  std::vector<std::unique_ptr<handoff::RawClient>> readers;
  for (std::size_t i = 1; i < Generations::kMaxGenerations; ++i) {
    readers.push_back(std::make_unique<handoff::RawClient>(server_->path()));
    batches(*readers.back());
    store_.grow_to(static_cast<int>(4 + 2 * i));
    generations_->refresh();
  }
  store_.grow_to(40);
  EXPECT_THROW(generations_->refresh(), Error);
  readers.clear();
  EXPECT_TRUE(eventually([this] { return !generations_->sweep(); }));
  EXPECT_NO_THROW(generations_->refresh());
}

}  // namespace served_generations_test
}  // namespace batchfs
