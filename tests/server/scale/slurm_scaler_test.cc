#include "server/scale/slurm_scaler.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ClusterState = ClusterJob::State;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

class SlurmScalerTest : public testing::Test {
 protected:
  std::string command_;  // the last command, joined by spaces
  absl::StatusOr<std::string> answer_ = "";
  const CommandRunner run_ = [this](const std::vector<std::string>& argv) {
    command_ = absl::StrJoin(argv, " ");
    return answer_;
  };
  SlurmScaler scaler_{"s1f", {}, "/scripts/worker.sbatch", run_};
};

TEST_F(SlurmScalerTest, ListsItsOwnJobsByName) {
  answer_ =
      "7|RUNNING|None\n8|COMPLETING|None\n12|PENDING|Resources\n13|CONFIGURING|None\n"
      "14|SUSPENDED|None\n15|SOMETHING_NEW|None\n";
  const auto jobs = scaler_.List();
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(command_, "squeue --me --noheader --name=chainfleet-s1f --sort=i --format=%A|%T|%r");
  std::vector<std::string> ids;
  std::vector<ClusterState> states;
  for (const ClusterJob& job : *jobs) {
    ids.push_back(job.id);
    states.push_back(job.state);
  }
  EXPECT_THAT(ids, ElementsAre("7", "8", "12", "13", "14", "15"));
  EXPECT_THAT(states, ElementsAre(ClusterState::kRunning, ClusterState::kEnding, ClusterState::kPending,
                                  ClusterState::kPending, ClusterState::kRunning, ClusterState::kPending));
  EXPECT_EQ(jobs->front().worker_prefix, "slurm-7-");  // matches no other job: 70 begins with 7, too
}

TEST_F(SlurmScalerTest, ARestoredStoreKnowsTheJobsOfItsFormerIncarnations) {
  SlurmScaler restored("s3c", {"s1f", "s2e"}, "/scripts/worker.sbatch", run_);
  answer_ = "7|RUNNING|None\n";
  EXPECT_EQ(restored.List()->at(0).worker_prefix, "slurm-7-");
  EXPECT_EQ(command_,
            "squeue --me --noheader --name=chainfleet-s3c,chainfleet-s1f,chainfleet-s2e --sort=i --format=%A|%T|%r");
  answer_ = "42\n";
  EXPECT_TRUE(restored.Submit().ok());
  EXPECT_THAT(command_, HasSubstr(" --job-name=chainfleet-s3c ")) << "new ones have the present name alone";
}

TEST_F(SlurmScalerTest, TellsJobsThatWaitFromJobsThatAreHeld) {
  answer_ =
      "1|PENDING|launch failed requeued held\n2|PENDING|JobHeldUser\n3|PENDING|JobHoldMaxRequeue\n"
      "4|PENDING|Priority\n5|PENDING|Nodes required for job are DOWN, DRAINED or reserved\n6|RUNNING|JobHeldAdmin\n";
  const auto jobs = scaler_.List();
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::vector<std::string> held;
  for (const ClusterJob& job : *jobs) held.push_back(job.held);
  EXPECT_THAT(held, ElementsAre("launch failed requeued held", "JobHeldUser", "JobHoldMaxRequeue", "", "", ""));
}

TEST_F(SlurmScalerTest, DoesNotTakeAWarningForAnEmptyQueue) {
  answer_ = "slurm_load_jobs: something odd\n";
  EXPECT_EQ(scaler_.List().status().code(), absl::StatusCode::kInternal);
  answer_ = absl::UnavailableError("exit 1");
  EXPECT_EQ(scaler_.List().status().code(), absl::StatusCode::kUnavailable);
  answer_ = "";
  EXPECT_TRUE(scaler_.List()->empty());
}

TEST_F(SlurmScalerTest, SubmitsOneTaskUnderItsName) {
  answer_ = "42\n";
  EXPECT_EQ(*scaler_.Submit(), "42");
  EXPECT_EQ(command_, "sbatch --parsable --job-name=chainfleet-s1f --ntasks=1 --export=ALL /scripts/worker.sbatch");
  answer_ = "43;cluster-b\n";
  EXPECT_EQ(*scaler_.Submit(), "43");
  answer_ = "Submitted, I think\n";
  EXPECT_THAT(std::string(scaler_.Submit().status().message()), HasSubstr("Submitted, I think"));
}

TEST_F(SlurmScalerTest, WithdrawsOnlyWhatStillWaits) {
  EXPECT_TRUE(scaler_.Withdraw("42").ok());
  EXPECT_EQ(command_, "scancel --state=PENDING 42");
}

TEST_F(SlurmScalerTest, DrainsByASignalToTheTasksAlone) {
  EXPECT_TRUE(scaler_.Drain("42").ok());
  EXPECT_EQ(command_, "scancel --signal=TERM 42");
  EXPECT_TRUE(scaler_.Kill("42").ok());
  EXPECT_EQ(command_, "scancel 42");
}

TEST(SlurmEnvironment, GivesWorkersNoPasswordOfAStore) {
  const std::vector<std::string> ours = {"PATH=/usr/bin",
                                         "HOME=/home/a",
                                         "SLURM_CONF=/etc/s",
                                         "SBATCH_PARTITION=gpu",
                                         "CHAINFLEET_TOKEN=secret",
                                         "CHAINFLEET_WORKER_TOKEN=t",
                                         "CHAINFLEET_METRICS_TOKEN=m",
                                         "CHAINFLEET_CA_FILE=/ca",
                                         "CHAINFLEET_STATE=postgresql://u:secret@db/c",
                                         "CHAINFLEET_BLOBS=s3:/",
                                         "AWS_SECRET_ACCESS_KEY=secret",
                                         "PGPASSWORD=secret",
                                         "CHAINFLEET_ADDRESS=old:1",
                                         "PATHOLOGY=x"};
  const auto environment = SlurmEnvironment(ours, {"a:7400,b:7400", 16});
  EXPECT_THAT(environment, UnorderedElementsAre(
                               "PATH=/usr/bin", "HOME=/home/a", "SLURM_CONF=/etc/s", "SBATCH_PARTITION=gpu",
                               "CHAINFLEET_WORKER_TOKEN=t", "CHAINFLEET_METRICS_TOKEN=m", "CHAINFLEET_CA_FILE=/ca",
                               "CHAINFLEET_ADDRESS=a:7400,b:7400", "no_grpc_proxy=a,b", "CHAINFLEET_CHAIN_SLOTS=16"));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("secret"))));
}

TEST(SlurmEnvironment, KeepsProxiesForTheBucketAndBypassesThemForCoordinators) {
  const std::vector<std::string> ours = {
      "AWS_CA_BUNDLE=/shared/ca.crt", "http_proxy=http://p:1", "https_proxy=http://p:2", "HTTPS_PROXY=http://p:3",
      "all_proxy=http://p:4",         "ALL_PROXY=http://p:5",  "no_proxy=.local",        "NO_PROXY=.lan"};
  const auto environment = SlurmEnvironment(ours, {"a.local:7400,[fd00::1]:7400", 16});
  EXPECT_THAT(environment, IsSupersetOf(ours));
  EXPECT_THAT(environment, Contains("no_grpc_proxy=a.local,fd00::1"));
}

}  // namespace
}  // namespace chainfleet
