// Data sets and models as stores had them when their names were those of all tenants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/core/state_store/state_store_fixture.h"

namespace chainfleet {

// Makes the tables of a store with OlderContent those of the release before.
inline constexpr char kOlderNames[] =
    "UPDATE datasets SET name = 'digits' WHERE name = 'vision/digits'; UPDATE models SET name = 'net' WHERE name = "
    "'vision/net'; UPDATE jobs SET dataset = 'digits', module = 'net map'; CREATE INDEX jobs_by_module ON jobs "
    "(module); DROP TABLE content_objects; ALTER TABLE resume_points DROP COLUMN proof";

inline ApplyResult ApplyTo(StateStore* store, const StateChange& change) {
  return store->Apply(std::vector<StateChange>{change}, absl::UnixEpoch())->at(0);
}

// Vision's data set and network, the weights of the default tenant, and a job of speech that uses all three.
inline void PutOlderContent(StateStore* store) {
  Dataset digits = SmallDataset("digits");
  digits.tenant = "vision";
  const StoredModel net = {.name = "net", .object = {"net-0", 12, DigestOf(3)}, .tenant = "vision"};
  const StoredModel map = {.name = "map", .object = {"map-0", 12, DigestOf(4)}};
  ApplyTo(store, change::BeginUpload{"a", {digits.shards[0].object.name}});
  ASSERT_TRUE(ApplyTo(store, change::PutDataset{digits, "a"}).status.ok());
  for (const StoredModel& model : {net, map}) {
    ApplyTo(store, change::BeginUpload{model.name, {model.object.name}});
    ASSERT_TRUE(ApplyTo(store, change::PutModel{model, model.name}).status.ok());
  }
  auto plan = std::make_shared<JobPlan>(*PlanOf("uses-aaaaaa", 1));
  plan->dataset = digits;
  plan->module = net;
  plan->weights = {map};
  ASSERT_TRUE(ApplyTo(store, change::CreateJob{plan, "", "speech"}).status.ok());
}

// They belong to those who put them, and the job still has them.
inline void ExpectUpgradedContent(StateStore* store) {
  const StoredState state = store->Load().value();
  EXPECT_EQ(state.datasets.at(0).tenant, "vision");
  const JobPlan& plan = *state.jobs.at(0).row.plan;
  EXPECT_EQ(plan.dataset->name, "digits");
  EXPECT_EQ(plan.dataset->shards, state.datasets.at(0).shards);
  EXPECT_EQ(ReasonOf(ApplyTo(store, change::DeleteDataset{"digits"}).status), "DATASET_NOT_FOUND");
  EXPECT_EQ(ReasonOf(ApplyTo(store, change::DeleteDataset{"vision/digits"}).status), "IN_USE");
  EXPECT_EQ(ReasonOf(ApplyTo(store, change::DeleteModel{"vision/net"}).status), "IN_USE");
  EXPECT_EQ(ReasonOf(ApplyTo(store, change::DeleteModel{"map"}).status), "IN_USE");
  const std::vector<std::string> objects = {"map-0", "net-0", "shard-0"};
  EXPECT_TRUE(ApplyTo(store, change::BeginUpload{"again", objects, true}).status.ok()) << "all of them are stored";
  ApplyTo(store, change::EndUpload{"again"});
  EXPECT_TRUE(store->ListGarbage("", 10)->empty());
  ApplyTo(store, change::SetIntent{"uses-aaaaaa", JobIntent::kDelete});
  EXPECT_TRUE(ApplyTo(store, change::DeleteDataset{"vision/digits"}).status.ok());
  EXPECT_TRUE(ApplyTo(store, change::DeleteModel{"vision/net"}).status.ok());
  EXPECT_TRUE(ApplyTo(store, change::DeleteModel{"map"}).status.ok());
  EXPECT_TRUE(store->Load()->datasets.empty());
  EXPECT_TRUE(store->Load()->models.empty());
  EXPECT_EQ(*store->ListGarbage("", 10), objects);
}

}  // namespace chainfleet
