// Every bound of the system in one place. Each wait, queue, message and retry has a bound, and the code that applies
// the bound names it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace chainfleet::limits {

inline constexpr int64_t kKiB = 1024;
inline constexpr int64_t kMiB = 1024 * kKiB;

// Messages.
inline constexpr int64_t kMaxMessageBytes = 16 * kMiB;          // any gRPC message
inline constexpr int64_t kChunkBytes = 512 * kKiB;              // one chunk of a streamed blob or partial prediction
inline constexpr int64_t kInlineResumePointBytes = 64 * kKiB;   // smaller resume points travel in CommitProgress
inline constexpr int64_t kMaxDatasetUploadBytes = 2048 * kMiB;  // all files of one PutDataset
inline constexpr int32_t kMaxDatasetFiles = 1000;               // files of one PutDataset
inline constexpr size_t kMaxFileNameBytes = 255;                // name of one file of PutDataset
inline constexpr int64_t kMaxModelBytes = 1024 * kMiB;          // a stored network, or its weights
inline constexpr int64_t kContentRecordBytes = 256 * kKiB;      // a larger record counts as several data sets or models
inline constexpr int64_t kMaxUploadsBytes = 4096 * kMiB;        // memory of all uploads of users together
inline constexpr int kWaitingDatasetReads = 16;                 // queued reads of data sets named by URI
inline constexpr int64_t kMaxClassNamesBytes = 64 * kKiB;       // names of a data set's classes together
inline constexpr size_t kMaxTenantsSharedWith = 1000;           // a data set or a model
inline constexpr int64_t kDatasetShardBytes = 16 * kMiB;
inline constexpr int64_t kMaxBlobBytes = int64_t{4} * 1024 * kMiB;
// Memory of all objects that workers put through a server. One worker, or the workers of one tenant, get at most half
// of it, so the largest object fits. Uploads of users do not count, because they must not keep a chain from committing.
inline constexpr int64_t kMaxObjectUploadsBytes = 2 * kMaxBlobBytes;

// A segment is closed when it reaches the first of these bounds.
inline constexpr int64_t kSegmentBytes = 4 * kMiB;
inline constexpr int64_t kMaxSegmentDraws = 65536;  // the record has a step and a weight of each
inline constexpr absl::Duration kSegmentAge = absl::Seconds(1);
// Records that one read of the state store returns. Together they take at most some 30 MB as text.
inline constexpr int32_t kSegmentsPerRead = 16;

// Leases.
inline constexpr absl::Duration kLeaseTtl = absl::Seconds(15);
inline constexpr absl::Duration kSyncInterval = absl::Seconds(5);
inline constexpr absl::Duration kLeaseGrace = absl::Seconds(5);
inline constexpr absl::Duration kLeaseMargin = absl::Seconds(2);  // a worker stops this long before its lease ends
inline constexpr int kMaxAttemptsWithoutProgress = 6;
inline constexpr int kCrashesUntilAlone = 2;  // crashes of workers that held the chain, since the chain's last commit
inline constexpr absl::Duration kAttemptDelay = absl::Milliseconds(500);  // after one attempt; doubles with each more
inline constexpr absl::Duration kMaxAttemptDelay = absl::Seconds(30);
// A worker pauses between two chains that run alone on it. A chain that is granted during the pause has time to make
// its first resume point, see kResumePointInterval.
inline constexpr absl::Duration kSoloRest = absl::Seconds(30);
// A device whose step takes at least this long, and 20 times as long as usual, does not answer. On the CPU a step of a
// large network takes minutes, and only the code of a module fails to end.
inline constexpr absl::Duration kHungGpuStepFloor = absl::Minutes(5);
inline constexpr absl::Duration kHungCpuStepFloor = absl::Hours(1);
inline constexpr int kHungStepFactor = 20;

// Server.
inline constexpr int64_t kServerRpcMemoryBytes = 4096 * kMiB;  // gRPC's own buffers
inline constexpr int kMaxConcurrentStreams = 1024;             // per connection
inline constexpr int kStateWriterBatch = 256;
inline constexpr int kStateWriterQueue = 65536;
inline constexpr absl::Duration kPolicyInterval = absl::Milliseconds(50);
// Bytes of traces of a running job that are stored in a second: a job with more traces stores them less often. A server
// that ends loses the traces since then.
inline constexpr double kTraceBytesPerSecond = 65536;
inline constexpr int kMaxChainsPerJob = 4096;  // chains of all sweep points together
inline constexpr int kMaxSweepPoints = 256;
inline constexpr int64_t kMaxSimulatedBytes = 128 * kMiB;            // data sets of all chains of a job of kind sbc
inline constexpr int64_t kMaxChainBytes = int64_t{64} * 1024 * kMiB;  // estimated memory of one chain
inline constexpr int64_t kMaxStepsPerChain = 1'000'000'000'000'000;   // steps of all epochs together, far from overflow
inline constexpr int64_t kMaxEpochs = 1'000'000;
inline constexpr int64_t kMaxCycles = 1'000'000;
inline constexpr int64_t kMaxLayers = 4096;  // layers of a network at all depths together
inline constexpr int kMaxLayerDepth = 8;     // nesting of layer lists
inline constexpr int kMaxPageSize = 1000;
inline constexpr int64_t kVerifyBytes = 256 * kMiB;                  // draws marked corrupt that one pass reads again
inline constexpr int kMaxAliases = 1000;                             // aliases of one tenant
inline constexpr int kMaxTokens = 2000;                              // tokens in the state store, with expired ones
inline constexpr int kMaxTenantTokens = kMaxTokens / 4;              // those of one tenant, but for the fleet's
inline constexpr int64_t kKeptVersions = 1000;                       // versions of a job that no alias names
inline constexpr absl::Duration kUpkeepInterval = absl::Seconds(5);  // time between two retention passes
inline constexpr int kRetentionBatch = 64;                           // segments that become tombstones in one change
inline constexpr int64_t kMaxJobEvents = 1000;                       // newest events kept for each job
inline constexpr int64_t kMaxEventBytes = 4 * kKiB;                  // text of one event
inline constexpr int64_t kEventsBytes = 64 * kMiB;                   // memory of the events of all jobs

// Worker.
inline constexpr int64_t kUploadQueueBytes = 64 * kMiB;
inline constexpr int kUploadAttempts = 8;  // attempts when bytes arrive wrong or go missing; outages do not count
inline constexpr absl::Duration kRetryInitial = absl::Milliseconds(100);
inline constexpr absl::Duration kRetryMax = absl::Seconds(5);
// A worker makes a chain's first resume point after kResumePointInterval, with or without draws. Later ones take
// 1/kResumePointFactor of the time, but are at most kMaxResumePointInterval apart, which bounds the work that a chain
// loses with its worker.
inline constexpr absl::Duration kResumePointInterval = absl::Seconds(30);
inline constexpr absl::Duration kMaxResumePointInterval = absl::Minutes(10);
inline constexpr int kResumePointFactor = 100;
inline constexpr absl::Duration kDrainDeadline = absl::Seconds(30);
inline constexpr int64_t kDrawCacheBytes = 512 * kMiB;
inline constexpr int64_t kDatasetCacheBytes = 2048 * kMiB;
inline constexpr int64_t kModelCacheBytes = 512 * kMiB;
inline constexpr int64_t kDiskCacheBytes = 8192 * kMiB;
inline constexpr int kMaxQueuedShards = 16;
inline constexpr int kMaxPredictors = 8;  // networks that a worker keeps ready for shards

// Predictions.
inline constexpr absl::Duration kPredictDeadline = absl::Seconds(60);
inline constexpr int64_t kCountedVersions = 1000;  // versions whose inferences are counted
inline constexpr absl::Duration kEvaluateDeadline = absl::Minutes(30);
inline constexpr int64_t kMaxMemberBytes = 256 * kMiB;  // predictions of single draws in one call
inline constexpr int kMaxQuantiles = 32;
inline constexpr int64_t kMaxPredictBytes = 1024 * kMiB;  // inputs of all predictions that a server holds
inline constexpr int kRunningEvaluations = 8;             // evaluations above this number wait
inline constexpr int kWaitingEvaluations = 64;
inline constexpr int kKeptEvaluations = 100;  // newest evaluations kept for each job
inline constexpr int kMaxExampleRows = 100;
inline constexpr int kMaxCurvePoints = 64;
inline constexpr int kMaxCorruptionSeverity = 5;
inline constexpr int kEntropyBins = 30;
inline constexpr int kMaxFisherPoints = 1024;
inline constexpr int kMaxLinePoints = 201;
inline constexpr int64_t kMaxShardResultBytes = 256 * kMiB;  // reassembled result of one shard
// Results of all shards that have not arrived completely. A worker sends one result after the other, and most have a few
// MiB, so there is room for a hundred workers. One worker, or the workers of one tenant, get at most half of it: room
// for four of the largest results.
inline constexpr int64_t kUnfinishedResultBytes = 2048 * kMiB;
inline constexpr int kMaxShardsInFlightPerWorker = 4;
inline constexpr int kShardAttempts = 3;
inline constexpr size_t kMaxWaitingShards = 1024;  // waiting shards of all predictions in the server
inline constexpr size_t kRowBlocksInFlight = 2;    // row blocks of one call: one runs, the next waits
inline constexpr int64_t kMinShardRows = 16;
inline constexpr int64_t kMaxShardRows = 1024;
inline constexpr int64_t kShardBytes = 4 * kMiB;         // a shard's inputs, and its sums of one chain and kind
inline constexpr int64_t kShardForwardPasses = 1 << 15;  // rows x draws x kinds: bounds the delay of sampling

// Bounds that depend on other bounds.
static_assert(kChunkBytes < kMaxMessageBytes && kInlineResumePointBytes < kMaxMessageBytes,
              "a chunk and an inline resume point each travel in one message");
static_assert(kSegmentBytes < kUploadQueueBytes, "a full segment fits into the upload queue");
static_assert(2 * 10 * kMaxSegmentDraws <= kMaxMessageBytes / 2, "steps and weights of a segment fit into a message");
static_assert(std::max({kSegmentBytes, kDatasetShardBytes, kMaxModelBytes}) <= kMaxBlobBytes,
              "the blob store takes each object");
static_assert(std::max(kMaxDatasetUploadBytes, kMaxModelBytes) <= kMaxUploadsBytes,
              "the largest upload is admitted when no other runs");
static_assert(kDatasetShardBytes <= kDatasetCacheBytes, "a worker can keep a shard of a data set");
static_assert(kLeaseMargin < kSyncInterval && kSyncInterval < kLeaseTtl && kRetryMax < kLeaseTtl,
              "a lease outlives the pause between two calls, also after a failed one");
static_assert(kCrashesUntilAlone < kMaxAttemptsWithoutProgress, "a suspect chain runs alone before it fails");
static_assert(kAttemptDelay <= kMaxAttemptDelay && kRetryInitial <= kRetryMax, "delays grow");
static_assert(kSoloRest >= kResumePointInterval,
              "a chain's first resume point falls into the rest between two solo turns");
static_assert(kResumePointInterval <= kMaxResumePointInterval, "ChainBatchRunner clamps to this range");
static_assert(kStateWriterBatch <= kStateWriterQueue, "the queue holds a full batch");
static_assert(2 * kMaxJobEvents * kMaxEventBytes <= std::min(kMaxMessageBytes, kEventsBytes),
              "the events of one job are kept and fit into one reply");
static_assert(kMaxSweepPoints <= kMaxChainsPerJob, "each point of a sweep has a chain");
static_assert(std::max(kMaxEpochs, kMaxCycles) <= kMaxStepsPerChain, "each epoch and each cycle has a step");
static_assert(kPredictDeadline <= kEvaluateDeadline, "an evaluation consists of predictions");
static_assert(kMaxMessageBytes <= kMaxPredictBytes, "the inputs of one call fit into those of all");
static_assert(kMaxMemberBytes <= kMaxShardResultBytes, "one shard can carry all single draws of a call");
static_assert(2 * kMaxShardResultBytes <= kUnfinishedResultBytes,
              "the largest result arrives when no other is under way");
static_assert(kMinShardRows <= kMaxShardRows, "RowsPerBlock clamps to this range");
static_assert(kMaxShardRows <= kShardForwardPasses, "a shard of one draw may have the most rows");
static_assert(2 * kShardBytes <= kMaxShardResultBytes, "the sums of a shard fit into its result");
static_assert(kMaxShardsInFlightPerWorker >= 2, "a worker keeps a place for predictions and one for evaluations");
static_assert(kMaxShardsInFlightPerWorker <= kMaxQueuedShards,
              "a worker has room for each shard that the server sends");

}  // namespace chainfleet::limits
