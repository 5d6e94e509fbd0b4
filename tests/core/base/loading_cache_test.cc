#include "core/base/loading_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/thread_pool.h"
#include "tests/support/fake_clock.h"
#include "tests/support/manual_executor.h"

namespace chainfleet {
namespace {

class LoadingCacheTest : public ::testing::Test {
 protected:
  using Cache = LoadingCache<int>;

  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  Cache cache_{100, &executor_};
  int loads_ = 0;
  int64_t bytes_ = 40;
  absl::Status failure_;

  // Returns the number of the load that gave the value; 0 for an error.
  int Get(const std::string& key) {
    std::vector<int> values;
    Begin(key, &values);
    executor_.RunUntilIdle();
    return values.empty() ? -1 : values[0];
  }
  void Begin(const std::string& key, std::vector<int>* values) {
    cache_.Get(
        key,
        [this](const Cache::Done<Cache::Loaded>& done) {
          executor_.Schedule([this, done, load = ++loads_] {
            if (!failure_.ok()) return done(failure_);
            done(Cache::Loaded{std::make_shared<const int>(load), bytes_});
          });
        },
        [values](const absl::StatusOr<std::shared_ptr<const int>>& loaded) {
          values->push_back(loaded.ok() ? **loaded : 0);
        });
  }
};

TEST_F(LoadingCacheTest, LoadsOnceAndDropsTheLeastRecentlyUsed) {
  EXPECT_EQ(Get("a"), 1);
  EXPECT_EQ(Get("b"), 2);
  EXPECT_EQ(Get("a"), 1);
  EXPECT_EQ(Get("c"), 3);  // 120 bytes: evicts b, the least recently used
  EXPECT_EQ(cache_.held_bytes(), 80);
  EXPECT_EQ(Get("a"), 1);
  EXPECT_EQ(Get("b"), 4);
  EXPECT_EQ(cache_.counts().hits, 2);
  EXPECT_EQ(cache_.counts().misses, 4);
}

TEST_F(LoadingCacheTest, AValueOfAllItsRoomTakesThePlaceOfOthersAndALargerOneIsNotKept) {
  EXPECT_EQ(Get("a"), 1);
  bytes_ = 101;
  EXPECT_EQ(Get("large"), 2);
  EXPECT_EQ(Get("large"), 3);
  EXPECT_EQ(Get("a"), 1) << "it evicted nothing";
  bytes_ = 100;
  EXPECT_EQ(Get("fits"), 4);
  EXPECT_EQ(Get("fits"), 4);
  EXPECT_EQ(cache_.held_bytes(), 100);
  EXPECT_EQ(Get("a"), 5);
}

TEST_F(LoadingCacheTest, DoesNotKeepErrors) {
  failure_ = absl::UnavailableError("down");
  EXPECT_EQ(Get("a"), 0);
  failure_ = absl::OkStatus();
  EXPECT_EQ(Get("a"), 2);
}

TEST_F(LoadingCacheTest, CallersOfOneKeyShareALoadInProgress) {
  std::vector<int> values;
  for (int i = 0; i < 3; ++i) Begin("a", &values);
  EXPECT_TRUE(values.empty()) << "answered inside the call";
  executor_.RunUntilIdle();
  EXPECT_EQ(values, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(loads_, 1);
}

TEST_F(LoadingCacheTest, FindsTheLastValueBeforeAKeyThatHasThePrefix) {
  for (const char* key : {"a/1", "b/1", "b/3"}) Get(key);
  EXPECT_EQ(*cache_.Before("b/4", "b/"), 3);
  EXPECT_EQ(*cache_.Before("b/3", "b/"), 2);
  EXPECT_EQ(cache_.Before("b/1", "b/"), nullptr);
  EXPECT_EQ(cache_.Before("a/1", "a/"), nullptr);
  cache_.Drop("b/");
  EXPECT_EQ(cache_.Before("b/4", "b/"), nullptr);
}

TEST_F(LoadingCacheTest, DropForgetsTheKeysWithThePrefixAlone) {
  bytes_ = 20;
  for (const char* key : {"a", "b/1", "b/2", "b0", "c"}) Get(key);
  EXPECT_EQ(cache_.held_bytes(), 100);
  cache_.Drop("b/");
  EXPECT_EQ(cache_.held_bytes(), 60);
  EXPECT_EQ(Get("a"), 1);
  EXPECT_EQ(Get("b0"), 4);
  EXPECT_EQ(Get("c"), 5);
  EXPECT_EQ(Get("b/1"), 6);
  EXPECT_EQ(Get("b/2"), 7);
  EXPECT_EQ(Get("b/1"), 6) << "it is kept again";
  cache_.Drop("nothing");
  EXPECT_EQ(cache_.held_bytes(), 100);
}

TEST_F(LoadingCacheTest, ALoadThatBeganBeforeDropAnswersItsCallersAndIsNotKept) {
  std::vector<int> before, after;
  Begin("b/1", &before);
  cache_.Drop("b/");
  Begin("b/1", &after);
  Begin("b/1", &after);
  EXPECT_EQ(loads_, 2) << "the callers after Drop share a load of their own";
  executor_.RunUntilIdle();
  EXPECT_EQ(before, std::vector<int>{1});
  EXPECT_EQ(after, (std::vector<int>{2, 2}));
  EXPECT_EQ(Get("b/1"), 2);
  EXPECT_EQ(cache_.held_bytes(), 40);

  Begin("b/2", &before);
  cache_.Drop("b/");
  executor_.RunUntilIdle();
  EXPECT_EQ(cache_.held_bytes(), 0);
  EXPECT_EQ(Get("b/2"), 4);
}

TEST(LoadingCacheThreads, AGetAfterDropNeverGetsAnOlderValue) {
  ThreadPool pool(3);
  LoadingCache<int> cache(100, &pool);
  std::atomic<int> stored = 0, dropped = 0, stale = 0;
  const auto load = [&](const LoadingCache<int>::Done<LoadingCache<int>::Loaded>& done) {
    pool.Schedule([&, done] {
      const auto value = std::make_shared<const int>(stored);
      PauseThread(absl::Microseconds(10));  // lets Drop run in between
      done(LoadingCache<int>::Loaded{value, 40});
    });
  };
  const auto read = [&] {
    for (int i = 0; i < 200; ++i) {
      const int oldest = dropped;
      const auto value = std::make_shared<std::promise<int>>();
      cache.Get("key", load, [value](const absl::StatusOr<std::shared_ptr<const int>>& v) { value->set_value(**v); });
      if (value->get_future().get() < oldest) ++stale;
    }
  };
  std::atomic<bool> reading = true;
  std::thread writer([&] {
    while (reading) {
      const int now = ++stored;
      cache.Drop("key");
      dropped = now;
      PauseThread(absl::Microseconds(10));
    }
  });
  std::thread other(read);
  read();
  other.join();
  reading = false;
  writer.join();
  EXPECT_EQ(stale, 0);
  EXPECT_GT(dropped, 0);
}

}  // namespace
}  // namespace chainfleet
