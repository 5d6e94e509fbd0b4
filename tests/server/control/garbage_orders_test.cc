// Runs the collector's pass with uploads and deletions of the same content, in every order of their steps. A step is
// one transaction or one access to the objects. A second, fenced collector deletes late the objects that it once
// listed.
#include <memory>
#include <string>
#include <vector>

#include "core/store/draw_codec/object_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/control/coordinator.h"
#include "server/control/garbage_collector.h"
#include "tests/server/control/all_orders.h"
#include "tests/support/fake_clock.h"
#include "tests/support/forwarding_blobs.h"
#include "tests/support/manual_executor.h"
#include "tests/support/recording_store.h"
#include "tests/support/rows_in_memory.h"

namespace chainfleet {
namespace {

using Turn = std::function<void()>;

// Lets other actors run before each access.
class SteppedBlobs final : public ForwardingBlobs {
 public:
  explicit SteppedBlobs(Turn turn) : turn_(std::move(turn)) {}
  absl::Status Delete(const std::string& name) override {
    turn_();
    return blobs.Delete(name);
  }

 private:
  const Turn turn_;
};

// As `objects` lie there.
Dataset Named(const std::string& name, const std::vector<std::string>& objects) {
  Dataset dataset;
  dataset.name = name;
  dataset.digest = DigestHex(64, 'd');
  for (const std::string& object : objects) dataset.shards.push_back({0, 1, {object, 5, DigestHex(64, 'e')}});
  return dataset;
}

// One run: a store with data set "old", the collector, and actors that make their steps one by one.
class World {
 public:
  World(Choices* choices, size_t num_shards) : choices_(choices), num_shards_(num_shards) {
    store_.BeforeEachCall([this] { LetOthersRun(); });
    AddUpload("old", Upload::kWhole);
    RunAlone();
  }
  enum class Upload { kWhole, kBreaksOff };
  void AddUpload(const std::string& name, Upload kind) {
    struct Put {
      std::vector<std::string> objects;
      std::string upload;
      bool repairs = false;
    };
    auto put = std::make_shared<Put>();
    Actor actor;
    const auto look = [this, put, name] {
      const absl::StatusOr<Dataset> known = coordinator_.catalog().datasets().Get({}, name);
      put->repairs = known.ok();
      put->objects.clear();
      ++uploads_;
      for (size_t i = 0; i < num_shards_; ++i) {
        put->objects.push_back(known.ok() ? known->shards[i].object.name
                                          : DatasetObjectName("store", DigestHex(64, "ef"[i]), uploads_));
      }
      return true;
    };
    actor.steps.push_back(look);
    actor.steps.push_back([this, put, look] {
      const absl::StatusOr<std::string> begun = Wait<std::string>([&](auto done) {
        Catalog& catalog = coordinator_.catalog();
        return put->repairs ? catalog.BeginRepair(put->objects, done) : catalog.BeginUpload(put->objects, done);
      });
      if (!begun.ok()) return look() && false;
      put->upload = *begun;
      return true;
    });
    for (size_t i = 0; i < num_shards_; ++i) {
      actor.steps.push_back([this, put, i] { return PutContentAddressed(&blobs_, put->objects[i], "bytes").ok(); });
    }
    actor.steps.push_back([this, put, name, kind] {
      if (kind == Upload::kWhole) {
        const Dataset dataset = Named(name, put->objects);
        return Wait<Dataset>([&](auto done) { coordinator_.catalog().Put(dataset, put->upload, done); }).ok();
      }
      coordinator_.catalog().EndUpload(put->upload);
      executor_.RunUntilIdle();
      return true;
    });
    actors_.push_back(std::move(actor));
  }
  // Its last steps: it has listed the objects to delete.
  void AddDeposedCollector() {
    Actor actor;
    const std::vector<std::string> listed = store_.ListGarbage("", 10).value();
    for (const std::string& object : listed) {
      actor.steps.push_back([this, object] { return blobs_.blobs.Delete(object).ok(); });
    }
    actors_.push_back(std::move(actor));
  }
  void AddDeletion(const std::string& name) {
    actors_.push_back({{[this, name] {
                         (void)Wait<bool>([&](auto done) { coordinator_.catalog().DeleteDataset({}, name, done); });
                         return true;
                       }},
                       false});
  }

  // The steps of all actors, one actor after another.
  void RunAlone() {
    while (!actors_.empty()) StepOne(0);
  }
  // Runs a pass of the collector among the steps of the others, then their remaining steps, then a pass alone.
  void Run() {
    stepping_ = true;
    EXPECT_TRUE(collector_.Collect().ok());
    stepping_ = false;
    for (Actor& actor : actors_) actor.refused = false;
    for (int refusals = 0; !actors_.empty() && refusals < 2;) refusals += !StepOne(choices_->Next(actors_.size()));
    EXPECT_TRUE(actors_.empty()) << "refused although nothing is deleted any more";
    EXPECT_TRUE(collector_.Collect().ok());
    CheckShards();
    EXPECT_TRUE(store_.ListGarbage("", 10)->empty());
  }
  std::vector<std::string> Datasets() {
    std::vector<std::string> names;
    const StoredState state = store_.Load().value();
    for (const Dataset& dataset : state.datasets) names.push_back(dataset.name);
    return names;
  }
  std::vector<std::string> Objects() { return blobs_.List("").value(); }

 private:
  struct Actor {
    std::vector<std::function<bool()>> steps;  // false: refused, and repeated later
    bool refused = false;
  };

  template <typename T, typename Call>
  absl::StatusOr<T> Wait(Call call) {
    absl::StatusOr<T> answer = absl::UnknownError("no answer");
    call([&](absl::StatusOr<T> value) { answer = std::move(value); });
    executor_.RunUntilIdle();
    return answer;
  }
  // Returns false if the step was refused.
  bool StepOne(size_t index) {
    Actor& actor = actors_[index];
    actor.refused = !actor.steps.front()();
    if (actor.refused) return false;
    actor.steps.erase(actor.steps.begin());
    if (actor.steps.empty()) actors_.erase(actors_.begin() + static_cast<int64_t>(index));
    CheckShards();
    return true;
  }
  // Between two steps of the collector: any number of the others' steps in any order.
  void LetOthersRun() {
    if (!stepping_) return;
    stepping_ = false;  // their own calls are no steps
    for (Actor& actor : actors_) actor.refused = false;
    for (;;) {
      CheckShards();
      std::vector<size_t> ready;
      for (size_t i = 0; i < actors_.size(); ++i) {
        if (!actors_[i].refused) ready.push_back(i);
      }
      const size_t choice = choices_->Next(ready.size() + 1);
      if (choice == ready.size()) break;
      StepOne(ready[choice]);
    }
    stepping_ = true;
  }
  void CheckShards() {
    const StoredState state = store_.Load().value();
    for (const Dataset& dataset : state.datasets) {
      for (const DatasetShard& shard : dataset.shards) {
        EXPECT_EQ(blobs_.Get(shard.object.name).value_or("missing"), "bytes")
            << shard.object.name << " of data set " << dataset.name;
      }
    }
  }

  Choices* const choices_;
  const size_t num_shards_;
  uint64_t uploads_ = 0;
  bool stepping_ = false;
  std::vector<Actor> actors_;
  FakeClock clock_;
  ManualExecutor executor_{&clock_};
  // Thousands of orders each begin with an empty store, so use maps, which open at once.
  RecordingStore store_{std::make_unique<RowsInMemoryStore>(std::make_shared<RowsInMemory>("incarnation-1"))};
  SteppedBlobs blobs_{[this] { LetOthersRun(); }};
  Coordinator coordinator_{&clock_, &executor_, &store_, store_.Load().value(), DispatcherOptions{.id_key = RngKey{1}}};
  GarbageCollector collector_{&executor_, &store_, &coordinator_.writer(), &blobs_};
};

TEST(GarbageOrders, APutOfADeletedDatasetsContentKeepsItsShards) {
  const int runs = Choices::ForEach([](Choices* choices) {
    World world(choices, 2);
    world.AddDeletion("old");
    world.AddUpload("new", World::Upload::kWhole);
    world.Run();
    EXPECT_THAT(world.Datasets(), testing::ElementsAre("new"));
    EXPECT_EQ(world.Objects().size(), 2u);
  });
  EXPECT_GE(runs, 79);
}

TEST(GarbageOrders, APutAgainUnderTheSameNameKeepsItsShards) {
  const int runs = Choices::ForEach([](Choices* choices) {
    World world(choices, 2);
    world.AddDeletion("old");
    world.AddUpload("old", World::Upload::kWhole);
    world.Run();
    EXPECT_EQ(world.Objects().size(), 2 * world.Datasets().size()) << "deleted before it was put again, or after";
  });
  EXPECT_GE(runs, 79);
}

TEST(GarbageOrders, UploadsOfTheSameContentDoNotAffectEachOther) {
  const int runs = Choices::ForEach([](Choices* choices) {
    World world(choices, 1);
    world.AddDeletion("old");
    world.AddUpload("new", World::Upload::kWhole);
    world.AddUpload("broken", World::Upload::kBreaksOff);
    world.Run();
    EXPECT_THAT(world.Datasets(), testing::ElementsAre("new"));
    EXPECT_EQ(world.Objects().size(), 1u);
  });
  EXPECT_GE(runs, 1000);
}

TEST(GarbageOrders, UploadsDuringADeletionWaitForNothing) {
  const int runs = Choices::ForEach([](Choices* choices) {
    World world(choices, 1);
    world.AddDeletion("old");
    world.RunAlone();
    world.AddUpload("new", World::Upload::kWhole);
    world.AddUpload("newer", World::Upload::kWhole);
    world.Run();
    EXPECT_THAT(world.Datasets(), testing::ElementsAre("new", "newer"));
    EXPECT_EQ(world.Objects().size(), 2u);
  });
  EXPECT_GE(runs, 1000);
}

TEST(GarbageOrders, AFencedCollectorDeletesNoRepeatedUpload) {
  const int runs = Choices::ForEach([](Choices* choices) {
    World world(choices, 1);
    world.AddDeletion("old");
    world.RunAlone();
    world.AddDeposedCollector();
    world.AddUpload("old", World::Upload::kWhole);
    world.Run();
    EXPECT_THAT(world.Datasets(), testing::ElementsAre("old"));
    EXPECT_EQ(world.Objects().size(), 1u);
  });
  EXPECT_GE(runs, 50);
}

}  // namespace
}  // namespace chainfleet
