// Every implementation of StateStore, opened and opened again on the same data, and the small values tests fill it
// with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/store_harness.h"

namespace chainfleet {

inline DigestHex DigestOf(int64_t n) {
  std::string digits = std::to_string(n);
  return std::string(64 - digits.size(), 'a') + digits;
}

inline Dataset SmallDataset(const std::string& name, const std::string& object = "shard-0") {
  Dataset dataset;
  dataset.name = name;
  dataset.digest = DigestOf(7);
  dataset.input_shape = {1, 2, 2};
  dataset.num_rows = 100;
  dataset.targets = Classes{10};
  dataset.normalisation = {{0.5}, {0.25}};
  dataset.shards = {{0, 100, {object, 123, DigestOf(8)}}};
  return dataset;
}

inline std::shared_ptr<const JobPlan> PlanOf(const std::string& job, int chains, bool with_dataset = false) {
  JobPlan plan;
  plan.job = job;
  plan.spec.name = job.substr(0, job.find('-'));
  plan.spec.model.kind = GaussianPotential{2, 1.0};
  plan.spec.schedule.kind = ConstantSchedule{0.1};
  plan.spec.num_steps = 100;
  plan.spec.chains = chains;
  if (with_dataset) plan.dataset = SmallDataset("digits");
  return std::make_shared<const JobPlan>(std::move(plan));
}

// One-change transactions on a store, and a chain that workers move on.
class StateStoreTest : public testing::TestWithParam<StoreKind> {
 protected:
  ApplyResult Apply(StateChange change) {
    auto results = store_->Apply(std::vector<StateChange>{std::move(change)}, wall_);
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->size(), 1u);
    return results->front();
  }
  ApplyResult Create(const std::string& job, int chains, const std::string& request = "") {
    return Apply(change::CreateJob{PlanOf(job, chains), request});
  }
  // Uploads and registers it, as if its shards had been written in between.
  ApplyResult Put(const Dataset& dataset) {
    std::vector<std::string> objects;
    for (const DatasetShard& shard : dataset.shards) objects.push_back(shard.object.name);
    const std::string upload = "upload-" + std::to_string(++uploads_);
    EXPECT_TRUE(Apply(change::BeginUpload{upload, objects}).status.ok());
    return Apply(change::PutDataset{dataset, upload});
  }
  ApplyResult Put(const StoredModel& model) {
    const std::string upload = "upload-" + std::to_string(++uploads_);
    EXPECT_TRUE(Apply(change::BeginUpload{upload, {model.object.name}}).status.ok());
    return Apply(change::PutModel{model, upload});
  }
  std::vector<std::string> Garbage() { return store_->ListGarbage("", 10).value(); }
  ApplyResult Grant(const ChainId& chain, int64_t epoch, const std::string& worker = "w1") {
    return Apply(change::GrantLease{chain, epoch, worker, worker + "-life"});
  }
  // A commit of one draw at `step` that follows the chain as `row` says.
  static change::CommitProgress CommitAt(const ChainRow& row, int64_t step) {
    change::CommitProgress c;
    c.chain = row.id;
    c.lease_epoch = row.lease_epoch;
    c.resume_point = {step, "state", std::nullopt, DigestOf(1000 + step)};
    Segment segment;
    segment.first_index = row.num_draws;
    segment.steps = {step};
    segment.weights = {1};
    segment.kinds = {DrawKind::kTheta};
    segment.object = {"segment-" + ToString(row.id) + "-" + std::to_string(step), 10, DigestOf(2000 + step)};
    segment.digest = DigestOf(3000 + step);
    segment.parent_digest = row.last_digest;
    c.segment = segment;
    c.author.worker = row.worker;
    c.incarnation = row.incarnation;
    c.author.host = "host";
    c.author.device_kind = "cpu";
    return c;
  }
  ChainRow RowOf(const ChainId& chain) {
    const StoredState state = store_->Load().value();
    for (const StoredJob& job : state.jobs) {
      if (job.row.id == chain.job) return job.chains.at(static_cast<size_t>(chain.index));
    }
    ADD_FAILURE() << "no chain " << ToString(chain);
    return {};
  }

  const absl::Time wall_ = absl::FromUnixSeconds(1'700'000'000);
  const ChainId chain_{"job-aaaaaa", 0};
  std::unique_ptr<StoreHarness> harness_ = MakeHarness(GetParam());
  std::unique_ptr<StateStore> store_ = harness_->Open();
  int uploads_ = 0;
};

}  // namespace chainfleet
