// Checks whether a fleet kept its promise after real faults.
//
//   check_history DATA_DIRECTORY [SEEN]
//
// Reads the stores that its servers used: those of the data directory, or of CHAINFLEET_STATE and CHAINFLEET_BLOBS. No
// server may run. SEEN has the acknowledged segments: lines `JOB CHAIN FIRST_INDEX DIGEST LEASE_EPOCH`. Runs every job
// again without faults, on one thread, as its workers do. Then runs the product's collector and expects no
// unreferenced object. Prints one line for each defect. Exit status: 0 no defect, 1 a defect, 2 the stores cannot be
// read.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/file_system.h"
#include "core/base/random_bits.h"
#include "core/base/thread_pool.h"
#include "core/store/blob_store/file_blob_store.h"
#include "core/store/blob_store/http_transport.h"
#include "core/store/blob_store/object_place.h"
#include "core/store/blob_store/s3_blob_store.h"
#include "core/store/state_store/postgres_leader.h"
#include "core/store/state_store/sqlite_state_store.h"
#include "server/control/garbage_collector.h"
#include "tests/sim/calm_run.h"
#include "tests/sim/history_checker.h"
#include "worker/numerics/arena/device.h"

namespace chainfleet {
namespace {

constexpr int kBroken = 1, kUnreadable = 2;
constexpr absl::Duration kElectionInterval = absl::Milliseconds(200);

// Opens the stores as a server does and in the same order, so that it refuses the same stores.
class Stores {
 public:
  absl::Status Open(const std::string& data_directory) {
    CHAINFLEET_ASSIGN_OR_RETURN(lock_, FileLock::Acquire(data_directory + "/lock"));
    CHAINFLEET_RETURN_IF_ERROR(OpenBlobs(data_directory));
    const std::string uri = EnvironmentVariable("CHAINFLEET_STATE");
    if (!uri.empty()) return OpenPostgres(uri);
    CHAINFLEET_ASSIGN_OR_RETURN(state_, OpenSqliteStateStore(data_directory + "/state.db", "none"));
    return absl::OkStatus();
  }

  StateStore* state() { return state_.get(); }
  BlobStore* blobs() { return blobs_.get(); }
  const Clock* clock() const { return &clock_; }

 private:
  absl::Status OpenBlobs(const std::string& data_directory) {
    const ObjectPlace place(RealFileSystem(), data_directory);
    const std::string url = EnvironmentVariable("CHAINFLEET_BLOBS");
    if (url.empty()) {
      CHAINFLEET_RETURN_IF_ERROR(place.Check(""));
      CHAINFLEET_ASSIGN_OR_RETURN(blobs_, FileBlobStore::Open(RealFileSystem(), place.folder()));
      return absl::OkStatus();
    }
    CHAINFLEET_ASSIGN_OR_RETURN(S3Settings settings, ReadS3Settings(url, EnvironmentVariable, *RealFileSystem()));
    CHAINFLEET_RETURN_IF_ERROR(place.Check(settings.Url()));
    transport_ = std::make_unique<CurlTransport>(settings.ca_bundle);
    auto client =
        std::make_unique<S3Client>(std::move(settings), transport_.get(), &clock_, RngKey{RandomBits()}, PauseThread);
    CHAINFLEET_ASSIGN_OR_RETURN(blobs_, S3BlobStore::Open(std::move(client), {}));
    return absl::OkStatus();
  }

  // A killed leader may be replaced when its term has ended.
  absl::Status OpenPostgres(const std::string& uri) {
    CHAINFLEET_ASSIGN_OR_RETURN(leader_, PostgresLeader::Connect({uri, "check_history", "none"}));
    const absl::Duration end = clock_.Monotonic() + 2 * kLeaderTerm;
    while (state_ == nullptr && clock_.Monotonic() < end) {
      CHAINFLEET_ASSIGN_OR_RETURN(PostgresLeader::Election election, leader_->TakeOver());
      state_ = std::move(election.store);
      if (state_ == nullptr) PauseThread(kElectionInterval);
    }
    return state_ == nullptr ? absl::FailedPreconditionError("a coordinator still leads") : absl::OkStatus();
  }

  SystemClock clock_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<PostgresLeader> leader_;
  std::unique_ptr<StateStore> state_;
};

absl::StatusOr<std::map<ChainId, DrawPath>> RunCalmly(const StoredState& stored, const BlobStore& blobs) {
  CHAINFLEET_RETURN_IF_ERROR(InitializeDevice("cpu", 1));
  std::vector<std::pair<JobSpec, std::map<int32_t, DrawPath>>> runs;  // jobs with equal specs have the same draws
  std::map<ChainId, DrawPath> calm;
  for (const StoredJob& job : stored.jobs) {
    std::shared_ptr<const ResidentDataset> dataset;
    if (const auto& description = job.row.plan->dataset) {
      std::vector<std::string> shards;
      for (const DatasetShard& shard : description->shards) {
        CHAINFLEET_ASSIGN_OR_RETURN(shards.emplace_back(), blobs.Get(shard.object.name));
      }
      CHAINFLEET_ASSIGN_OR_RETURN(dataset, ResidentDataset::Create(*description, shards));
    }
    const JobSpec& spec = job.row.plan->spec;
    auto known = std::find_if(runs.begin(), runs.end(), [&spec](const auto& run) { return run.first == spec; });
    if (known == runs.end()) known = runs.insert(known, {spec, CalmRun(*job.row.plan, dataset)});
    for (const auto& [index, path] : known->second) calm.emplace(ChainId{job.row.id, index}, path);
  }
  return calm;
}

History ReadSeen(const std::string& path) {
  History history;
  std::ifstream lines(path);
  ChainId chain;
  History::Event event{.kind = History::Event::Kind::kAcknowledged};
  while (lines >> chain.job >> chain.index >> event.first_index >> event.digest >> event.lease_epoch) {
    history.Add(chain, event);
  }
  return history;
}

absl::StatusOr<std::vector<std::string>> Judge(const std::string& data_directory, const History& seen) {
  Stores stores;
  CHAINFLEET_RETURN_IF_ERROR(stores.Open(data_directory));
  CHAINFLEET_ASSIGN_OR_RETURN(const StoredState stored, stores.state()->Load());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto calm, RunCalmly(stored, *stores.blobs()));
  HistoryChecker checker(stores.state(), stores.blobs(), [&calm](const ChainId& chain) {
    const auto found = calm.find(chain);
    return found == calm.end() ? nullptr : &found->second;
  });
  std::vector<std::string> wrong = checker.Check(seen);
  ThreadPool thread(1);
  StateWriter writer(stores.clock(), &thread, stores.state(), nullptr);
  GarbageCollector collector(&thread, stores.state(), &writer, stores.blobs());
  CHAINFLEET_RETURN_IF_ERROR(collector.Recover());
  CHAINFLEET_RETURN_IF_ERROR(collector.Collect().status());
  for (const std::string& name : checker.FindGarbage()) wrong.push_back("nothing refers to " + name);
  return wrong;
}

int Main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: check_history DATA_DIRECTORY [SEEN]\n";
    return kUnreadable;
  }
  const auto wrong = Judge(argv[1], argc == 3 ? ReadSeen(argv[2]) : History());
  if (!wrong.ok()) {
    std::cerr << "check_history: " << wrong.status().ToString() << "\n";
    return kUnreadable;
  }
  for (const std::string& line : *wrong) std::cout << line << "\n";
  return wrong->empty() ? 0 : kBroken;
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) { return chainfleet::Main(argc, argv); }
