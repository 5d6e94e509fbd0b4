// Runs a whole worker on a fake GPU that runs out of memory, or breaks, at an allocation in any call of its runner: a
// step, a draw, a resume point, the last held draw, a chain that leaves, or a batch that is split.
#include <c10/core/Allocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fake_coordinator.h"
#include "tests/support/fake_cuda/fake_gpu_calls.h"
#include "tests/support/network_chains.h"
#include "tests/support/synthetic_dataset.h"
#include "tests/support/tight_batch.h"
#include "tests/support/worker_fixture.h"
#include "worker/numerics/tensors/torch_errors.h"

namespace chainfleet {
namespace {

using fake_cuda::Fail;
using fake_cuda::Fault;

constexpr int32_t kChains = 5;
constexpr size_t kMostTogether = 2;  // the batch of five is split into three and two, and the three once more
// The strides between the failing allocations, because all would take minutes. The strides are primes, so that no two
// runs of a call meet the same allocations.
constexpr int64_t kStride = 23, kStepStride = 797;

int64_t Allocations() { return fake_cuda::GpuCounts().allocations; }

// The calls of a run on its batches, and the call that makes the n-th allocation. A device can also break right before
// a call, because some calls only copy.
struct CallMap {
  int64_t began = Allocations();
  std::map<int64_t, std::string> allocations;  // by n, from 1
  std::vector<std::string> calls;
  std::optional<size_t> breaks_before;

  template <typename Call>
  auto Record(const std::string& name, Call call) {
    if (breaks_before == calls.size()) BreakDevice();
    calls.push_back(name);
    struct Entry {
      CallMap* map;
      const std::string& name;
      int64_t before = Allocations();
      ~Entry() {
        for (int64_t n = before + 1; n <= Allocations(); ++n) map->allocations[n - map->began] = name;
      }
    } entry{this, name};
    return call();
  }

 private:
  static void BreakDevice() {
    Fail(1, Fault::kLost);
    (void)CatchTorch("an allocation", [] {
      (void)c10::GetAllocator(c10::DeviceType::CUDA)->allocate(1);
      return absl::OkStatus();
    });
  }
};

class RecordedBatch final : public ChainBatch {
 public:
  RecordedBatch(std::unique_ptr<ChainBatch> batch, CallMap* map) : batch_(std::move(batch)), map_(map) {}

  absl::Status AddChain(int32_t index, const std::optional<std::string>& resume_point,
                        const std::string* weights) override {
    return map_->Record("AddChain", [&] { return batch_->AddChain(index, resume_point, weights); });
  }
  void RemoveChain(int32_t index) override {
    map_->Record("RemoveChain", [&] { batch_->RemoveChain(index); });
  }
  std::vector<int32_t> chains() const override { return batch_->chains(); }
  int64_t StepsDone(int32_t index) const override { return batch_->StepsDone(index); }
  absl::StatusOr<std::vector<RowReport>> Step() override {
    return map_->Record("Step", [&] { return batch_->Step(); });
  }
  Draw TakeDraw(int32_t index) const override {
    return map_->Record("TakeDraw", [&] { return batch_->TakeDraw(index); });
  }
  std::optional<Draw> GiveUpHeld(int32_t index) override {
    return map_->Record("GiveUpHeld", [&] { return batch_->GiveUpHeld(index); });
  }
  bool IsFinite(int32_t index) override {
    return map_->Record("IsFinite", [&] { return batch_->IsFinite(index); });
  }
  std::string SaveResumePoint(int32_t index) const override {
    return map_->Record("SaveResumePoint", [&] { return batch_->SaveResumePoint(index); });
  }
  const std::vector<ParameterShape>& parameters() const override { return batch_->parameters(); }
  const std::vector<std::string>& trace_quantities() const override { return batch_->trace_quantities(); }

 private:
  const std::unique_ptr<ChainBatch> batch_;
  CallMap* const map_;
};

// The digests that the server has for each chain at the end.
using Draws = std::map<int32_t, std::vector<DigestHex>>;

class RunnerFaults : public ::testing::TestWithParam<SamplerSpec> {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(InitializeDevice("cuda:0", 1).ok()); }
  void TearDown() override { Fail(0); }

  std::shared_ptr<JobPlan> Plan() const {
    auto plan = NetworkPlan({BuiltinModel{"mlp", {3}}}, GetParam(), *data_);
    plan->spec.prior.kind = GaussianPrior{5};
    plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-4}};
    plan->spec.batch_size = 8;
    plan->spec.num_steps = 4;
    plan->spec.chains = kChains;
    plan->spec.collect.segment_draws = 1;
    return plan;
  }

  // A server with one job, and workers that join one after the other.
  struct World {
    explicit World(std::shared_ptr<const JobPlan> job, std::shared_ptr<const ResidentDataset> job_data)
        : plan(std::move(job)), data(std::move(job_data)) {
      auto without_data = std::make_shared<JobPlan>(*plan);
      without_data->dataset.reset();  // the factory has it
      server.AddChains(without_data, kChains);
    }
    ~World() { executor.DropAll(); }

    // Runs until all chains have ended, or until the worker's device is lost and its chains are back.
    void Run(const std::string& name) {
      const ChainBatchFactory factory = [this](auto, auto) -> absl::StatusOr<std::unique_ptr<ChainBatch>> {
        CHAINFLEET_ASSIGN_OR_RETURN(auto batch,
                                    map.Record("Create", [this] { return ChainBatch::Create(plan, data, "cuda:0"); }));
        return std::make_unique<TightBatch>(std::make_unique<RecordedBatch>(std::move(batch), &map), kMostTogether, 1);
      };
      workers.push_back(
          std::make_unique<FakeWorker>(&server, &executor, &clock, factory, FakeWorker::Options{name, name + "-1", 8}));
      FakeWorker& worker = *workers.back();
      worker.session.Start();
      for (int turn = 0; turn < 2000 && !AllEnded() && !(lost(worker) && NoneLeased()); ++turn) {
        executor.RunUntilIdle();
        if (!worker.device.RunOnce()) executor.RunFor(absl::Milliseconds(50));
      }
      server.drain = lost(worker);
    }
    static bool lost(const FakeWorker& worker) { return !worker.held.device_responds(); }
    bool AllEnded() const {
      return std::ranges::all_of(server.chains, [](const auto& chain) { return IsFinal(chain.second.state); });
    }
    bool NoneLeased() const {
      return std::ranges::none_of(server.chains,
                                  [](const auto& chain) { return chain.second.state == ChainState::kLeased; });
    }
    Draws DrawsOfAll() const {
      Draws draws;
      for (const auto& [id, chain] : server.chains) {
        EXPECT_EQ(chain.state, ChainState::kSucceeded) << ToString(id) << ": " << chain.reason;
        for (const Segment& segment : chain.segments) draws[id.index].push_back(segment.digest);
      }
      return draws;
    }

    const std::shared_ptr<const JobPlan> plan;
    const std::shared_ptr<const ResidentDataset> data;
    FakeClock clock;
    ManualExecutor executor{&clock};
    FakeCoordinator server{&executor};
    CallMap map;
    std::vector<std::unique_ptr<FakeWorker>> workers;
  };

  // Runs a world in which `order` triggers a fault: all chains match their run without the fault.
  void Try(const std::string& where, Fault fault, const std::function<void(World*)>& order, const Draws& expected) {
    World world(Plan(), data_);
    order(&world);
    world.Run("w1");
    Fail(0);
    const bool lost = World::lost(*world.workers.back());
    // The last allocations may belong to abandoned work; then all chains still end.
    EXPECT_TRUE(lost || fault == Fault::kOutOfMemory || world.AllEnded()) << where;
    EXPECT_FALSE(lost && fault == Fault::kOutOfMemory) << where;
    EXPECT_TRUE(world.NoneLeased()) << where;
    std::map<ChainId, int> given_back;
    for (const ReleasedChain& released : world.server.released) ++given_back[released.chain];
    for (const auto& [chain, times] : given_back) EXPECT_EQ(times, 1) << where << ": " << ToString(chain);
    world.server.drain = false;
    if (lost) world.Run("w2");
    EXPECT_EQ(world.DrawsOfAll(), expected) << where;
  }

  const std::shared_ptr<const ResidentDataset> data_ = SyntheticImages(24);
};

TEST_P(RunnerFaults, NoChainIsLostAndNoneStepsTwice) {
  World undisturbed(Plan(), data_);
  undisturbed.Run("w0");
  const Draws expected = undisturbed.DrawsOfAll();
  ASSERT_EQ(expected.size(), static_cast<size_t>(kChains));
  const CallMap& map = undisturbed.map;
  EXPECT_THAT(map.calls, ::testing::IsSupersetOf({"Create", "AddChain", "Step", "TakeDraw", "IsFinite",
                                                  "SaveResumePoint", "GiveUpHeld", "RemoveChain"}));
  for (const auto& [n, call] : map.allocations) {
    if (n % (call == "Step" ? kStepStride : kStride) != 0) continue;
    for (const Fault fault : {Fault::kOutOfMemory, Fault::kLost}) {
      Try(
          absl::StrCat(call, " at allocation ", n, fault == Fault::kLost ? ", lost" : ", out of memory"), fault,
          [n = n, fault](World*) { Fail(n, fault); }, expected);
      if (HasFailure()) return;
    }
  }
  for (size_t call = 0; call < map.calls.size(); ++call) {
    Try(
        absl::StrCat("lost before call ", call, ", ", map.calls[call]), Fault::kLost,
        [call](World* world) { world->map.breaks_before = call; }, expected);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, RunnerFaults,
                         ::testing::Values(SamplerSpec{EmcmcSpec{1e-4}}, SamplerSpec{HmcSpec{.leapfrog_steps = 2}}),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace chainfleet
