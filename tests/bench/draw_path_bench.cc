// A draw's way: serialised, hashed, streamed over gRPC, stored, committed. The server is the real one, in this process,
// over SQLite and files in a temporary folder.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/segment_codec.h"
#include "core/store/draw_codec/sha256.h"
#include "server/server.h"
#include "worker/rpc/coordinator_client.h"

namespace chainfleet {
namespace {

constexpr int64_t kLenet5Parameters = 61706;
constexpr int kChains = 16;

std::vector<ParameterShape> Flat(int64_t dimension) { return {{"theta", {dimension}, 0, 0}}; }

SegmentContent Content(const ChainId& chain, int64_t first_index, const DigestHex& parent, int64_t draws,
                       int64_t dimension, std::vector<DrawKind> kinds) {
  SegmentContent content{chain, {.first_index = first_index, .kinds = std::move(kinds), .parent_digest = parent}, {}};
  for (int64_t i = 0; i < draws; ++i) {
    Draw draw{.step = first_index + i + 1};
    for (size_t kind = 0; kind < content.segment.kinds.size(); ++kind) {
      draw.theta.emplace_back(static_cast<size_t>(dimension), static_cast<float>(first_index + i));
    }
    content.draws.push_back(std::move(draw));
  }
  return content;
}

SegmentContent Lenet5Content(int64_t first_index) {
  return Content({"bench-aaaaaa", 0}, first_index, FirstParentDigest(), 8, kLenet5Parameters,
                 {DrawKind::kTheta, DrawKind::kThetaA});
}

std::string Encoded(const SegmentContent& content, int64_t dimension, Segment* segment) {
  *segment = content.segment;
  return EncodeSegment(content.chain, content.draws, Flat(dimension), segment);
}

std::string EncodedLenet5(int64_t first_index) {
  Segment segment;
  return Encoded(Lenet5Content(first_index), kLenet5Parameters, &segment);
}

template <typename T, typename Start>
T Await(Start start) {
  std::promise<absl::StatusOr<T>> promise;
  start([&](absl::StatusOr<T> value) { promise.set_value(std::move(value)); });
  absl::StatusOr<T> value = promise.get_future().get();
  CHAINFLEET_CHECK(value.ok()) << value.status().ToString();
  return *std::move(value);
}

// A server, and one worker that holds the leases of kChains chains.
class Loopback {
 public:
  // With `joined`, the worker signs its commits, as real ones do.
  explicit Loopback(bool joined = false) : folder_(std::filesystem::temp_directory_path() / "chainfleet-bench-XXXXXX") {
    CHAINFLEET_CHECK(mkdtemp(folder_.data()) != nullptr);
    auto server = Server::Start(
        {.data_directory = folder_, .listen = "127.0.0.1:0", .metrics_listen = "off", .http_listen = "off"},
        std::nullopt, [](const absl::Status&) { std::abort(); });
    CHAINFLEET_CHECK(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    client_ = std::make_unique<CoordinatorClient>(CoordinatorClient::Options{
        .address = "127.0.0.1:" + std::to_string(server_->port()), .credentials = joined ? &credentials_ : nullptr});
    TakeLeases();
  }
  ~Loopback() {
    client_->Stop();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  CoordinatorClient& client() { return *client_; }
  std::vector<Grant>& grants() { return grants_; }
  const std::string& store() const { return store_; }
  const std::string& incarnation() const { return credentials_.incarnation(); }

 private:
  void TakeLeases() {
    JobSpec spec;
    spec.name = "bench";
    spec.model.kind = GaussianPotential{.dimension = 10};
    spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
    spec.num_steps = 1 << 22;  // more than are committed, and draws that fit on a disk
    spec.chains = kChains;
    (void)Await<JobView>(
        [&](auto done) { server_->coordinator().dispatcher().CreateJob(kDefaultTenant, spec, "", false, done); });
    SynchronizeRequest request{.worker = "bench",
                               .incarnation = credentials_.incarnation(),
                               .devices = {{.name = "cpu", .chain_slots = kChains}}};
    while (grants_.size() < kChains) {
      ++request.seq;
      const auto reply =
          Await<SynchronizeReply>([&](auto done) { client_->Synchronize(request, absl::Seconds(30), done); });
      grants_ = reply.grants;
      store_ = reply.store_incarnation;
    }
  }

  std::string folder_, store_;
  std::unique_ptr<Server> server_;
  const SystemClock clock_;
  WorkerCredentials credentials_{"", "bench", &clock_};
  std::unique_ptr<CoordinatorClient> client_;
  std::vector<Grant> grants_;
};

void DrawEncode(benchmark::State& state) {
  const SegmentContent content = Lenet5Content(0);
  int64_t bytes = 0;
  Segment segment;
  for (auto _ : state) bytes += static_cast<int64_t>(Encoded(content, kLenet5Parameters, &segment).size());
  state.SetBytesProcessed(bytes);
}

void DrawHash(benchmark::State& state) {
  const std::string bytes = EncodedLenet5(0);
  for (auto _ : state) benchmark::DoNotOptimize(Sha256Hex(bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}

// PutBlob of a 4 MiB segment: chunks over gRPC, hashed on arrival, written, fsynced.
void DrawStreamAndStore(benchmark::State& state) {
  Loopback loopback;
  const Grant& grant = loopback.grants().front();
  int64_t index = 0, sent = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto bytes = std::make_shared<const std::string>(EncodedLenet5(++index));
    const DigestHex sha256 = Sha256Hex(*bytes);
    const BlobRef ref{SegmentObjectName(loopback.store(), grant.chain, grant.lease_epoch, sha256),
                      static_cast<int64_t>(bytes->size()), sha256};
    state.ResumeTiming();
    Await<bool>([&](auto done) { loopback.client().PutBlob(grant.chain, grant.lease_epoch, ref, bytes, done); });
    sent += ref.size_bytes;
  }
  state.SetBytesProcessed(sent);
}

// The rival of the line above: the same bytes written to a file and fsynced, with no network, hash or name between.
void PlainWriteAndSync(benchmark::State& state) {
  const std::string bytes = EncodedLenet5(0);
  const std::string folder = std::filesystem::temp_directory_path() / "chainfleet-bench-plain";
  CHAINFLEET_CHECK(RealFileSystem()->CreateFolders(folder).ok());
  int64_t files = 0;
  for (auto _ : state)
    CHAINFLEET_CHECK(RealFileSystem()->WriteSynced(folder + "/" + std::to_string(++files), bytes).ok());
  state.SetBytesProcessed(files * static_cast<int64_t>(bytes.size()));
  std::filesystem::remove_all(folder);
}

ResumePoint ResumePointAt(int64_t step) {
  static const std::string bytes(200, 'r');
  static const DigestHex sha256 = Sha256Hex(bytes);
  return {.step = step, .inline_bytes = bytes, .object = {}, .sha256 = sha256};
}

// CommitProgress over gRPC with an inline resume point, kChains at once.
void Commit(benchmark::State& state) {
  Loopback loopback;
  int64_t step = 0;
  for (auto _ : state) {
    ++step;
    std::vector<std::promise<absl::StatusOr<CommitReply>>> replies(kChains);
    for (int c = 0; c < kChains; ++c) {
      const Grant& grant = loopback.grants()[static_cast<size_t>(c)];
      ProgressCommit commit{.author = Author{"bench", "bench", "cpu", 1},
                            .incarnation = loopback.incarnation(),
                            .chain = grant.chain,
                            .lease_epoch = grant.lease_epoch};
      commit.resume_point = ResumePointAt(step);
      loopback.client().CommitProgress(commit, [&, c](absl::StatusOr<CommitReply> reply) {
        replies[static_cast<size_t>(c)].set_value(std::move(reply));
      });
    }
    for (auto& reply : replies) {
      const auto value = reply.get_future().get();
      CHAINFLEET_CHECK(value.ok()) << value.status().ToString();
    }
  }
  state.SetItemsProcessed(state.iterations() * kChains);
}

// The whole way of a 10-parameter model's draws, in segments of 1000: encode, hash, put, commit. `chains` at once.
void SmallDraws(benchmark::State& state, bool joined, int chains) {
  Loopback loopback(joined);
  constexpr int64_t kDraws = 1000;
  std::vector<DigestHex> parents(static_cast<size_t>(chains), FirstParentDigest());
  int64_t index = 0;
  for (auto _ : state) {
    std::vector<std::promise<absl::StatusOr<CommitReply>>> replies(parents.size());
    for (size_t c = 0; c < parents.size(); ++c) {
      const Grant& grant = loopback.grants()[c];
      auto commit = std::make_shared<ProgressCommit>(ProgressCommit{.author = Author{"bench", "bench", "cpu", 1},
                                                                    .incarnation = loopback.incarnation(),
                                                                    .chain = grant.chain,
                                                                    .lease_epoch = grant.lease_epoch});
      Segment& segment = commit->segment.emplace();
      const auto bytes = std::make_shared<const std::string>(
          Encoded(Content(grant.chain, index, parents[c], kDraws, 10, {DrawKind::kTheta}), 10, &segment));
      segment.object = {SegmentObjectName(loopback.store(), grant.chain, grant.lease_epoch, segment.digest),
                        static_cast<int64_t>(bytes->size()), Sha256Hex(*bytes)};
      ResumePoint& point = commit->resume_point = ResumePointAt(index + kDraws);
      point.proof.emplace();
      point.proof->name = ResumeObjectName(loopback.store(), grant.chain, grant.lease_epoch, point.sha256);
      point.proof->last_digest = segment.digest;
      point.proof->with_draws = true;
      parents[c] = segment.digest;
      loopback.client().PutBlob(grant.chain, grant.lease_epoch, segment.object, bytes,
                                [&loopback, commit, &reply = replies[c]](const absl::StatusOr<bool>& put) {
                                  CHAINFLEET_CHECK(put.ok()) << put.status().ToString();
                                  loopback.client().CommitProgress(
                                      *commit, [&reply](auto committed) { reply.set_value(std::move(committed)); });
                                });
    }
    for (auto& reply : replies) {
      const auto value = reply.get_future().get();
      CHAINFLEET_CHECK(value.ok()) << value.status().ToString();
    }
    index += kDraws;
  }
  state.SetItemsProcessed(state.iterations() * chains);
}

BENCHMARK(DrawEncode)->Name("draw_path/encode_lenet5")->UseRealTime();
BENCHMARK(DrawHash)->Name("draw_path/hash_lenet5")->UseRealTime();
BENCHMARK(DrawStreamAndStore)->Name("draw_path/stream_and_store_lenet5")->UseRealTime();
BENCHMARK(PlainWriteAndSync)->Name("draw_path/rival_plain_write_and_sync")->UseRealTime();
BENCHMARK(Commit)->Name("draw_path/commits_16_chains")->UseRealTime();
BENCHMARK_CAPTURE(SmallDraws, plain, false, 1)->Name("draw_path/whole_way_10_parameters")->UseRealTime();
BENCHMARK_CAPTURE(SmallDraws, with_key, true, 1)->Name("draw_path/signed_whole_way_10_parameters")->UseRealTime();
BENCHMARK_CAPTURE(SmallDraws, plain_16, false, kChains)->Name("draw_path/whole_way_16_chains")->UseRealTime();
BENCHMARK_CAPTURE(SmallDraws, with_key_16, true, kChains)->Name("draw_path/signed_whole_way_16_chains")->UseRealTime();

}  // namespace
}  // namespace chainfleet
