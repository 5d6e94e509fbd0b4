// The router on real threads: what ThreadSanitizer is for.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread_pool.h"
#include "gtest/gtest.h"
#include "server/predict/serving/predict_router.h"
#include "tests/server/predict/fake_serving.h"
#include "tests/support/fake_clock.h"

namespace chainfleet {
namespace {

// Answers on the pool's threads; every seventh shard is lost.
class ThreadedShardPort final : public ShardPort {
 public:
  explicit ThreadedShardPort(Executor* executor) : executor_(executor) {}

  std::vector<ServingWorker> Workers() override {
    MutexLock lock(&mutex_);
    return {{"a", in_flight_["a"]}, {"b", in_flight_["b"]}, {"c", in_flight_["c"]}};
  }
  void Send(const std::string& worker, const ShardRequest& request,
            std::function<void(absl::StatusOr<ShardResult>)> done) override {
    MutexLock lock(&mutex_);
    ++in_flight_[worker];
    executor_->Schedule([this, worker, request, done = std::move(done)] {
      ShardResult result{.shard_id = request.shard_id, .partials = {}, .corrupt_objects = {}};
      for (const ChainDraws& chain : request.chains) {
        for (const DrawKind kind : request.kinds) {
          result.partials.push_back(
              testing::SumDraws(chain.chain, kind, {{0, 1}, {1, 1}}, {0, 1, 2}, 3, testing::ArbitraryProbabilities(3)));
        }
      }
      {
        MutexLock relock(&mutex_);
        --in_flight_[worker];
      }
      if (request.shard_id % 7 == 0) return done(absl::UnavailableError("lost"));
      done(std::move(result));
    });
  }
  void Cancel(const std::string&, uint64_t) override {}

 private:
  Executor* const executor_;
  Mutex mutex_;
  std::map<std::string, int32_t> in_flight_ CHAINFLEET_GUARDED_BY(mutex_);
};

TEST(PredictRouter, AnswersEveryCallOnceOnManyThreads) {
  auto pool = std::make_unique<ThreadPool>(4);
  testing::FakeDrawCatalog catalog(pool.get(), {2, 2, 2, 2, 2}, Classes{3});
  ThreadedShardPort port(pool.get());
  FakeClock clock;
  ShardQueue queue(&clock, pool.get(), &port);
  PredictRouter router(&clock, pool.get(), &catalog, &queue);
  constexpr int kCalls = 200;
  Mutex mutex;
  CondVar all_done;
  int answered = 0;
  std::vector<std::vector<double>> answers;
  for (int i = 0; i < kCalls; ++i) {
    const auto cancel =
        router.Predict({}, testing::NumberedRows(3), absl::Hours(1), [&](const absl::StatusOr<Prediction>& result) {
          MutexLock lock(&mutex);
          ++answered;
          if (result.ok()) answers.push_back(result->scores.classes().mean_probability);
          all_done.SignalAll();
        });
    if (i % 5 == 0) cancel();
  }
  {
    MutexLock lock(&mutex);
    while (answered < kCalls) all_done.Wait(&mutex);
  }
  pool.reset();  // shards of cancelled calls still run on it
  EXPECT_EQ(answered, kCalls);
  EXPECT_GE(answers.size(), kCalls / 2u);
  for (const std::vector<double>& answer : answers) EXPECT_EQ(answer, answers.front());
}

}  // namespace
}  // namespace chainfleet
