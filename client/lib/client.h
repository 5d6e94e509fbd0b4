// A program's access to a chainfleet server: typed, blocking calls with deadlines and bounded retries.
//
// UNAVAILABLE is retried with jittered backoff until the call's timeout, at the next address of the list. Every call is
// idempotent (creating calls carry a request_id, which the caller sets). Each call has an id in the server's logs, the
// same for all its attempts. An error that remains is the server's own, with reason, field violations and that id; if
// no server can be reached it is UNAVAILABLE with the addresses in the message.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chainfleet/v1/access.grpc.pb.h"
#include "chainfleet/v1/jobs.grpc.pb.h"
#include "chainfleet/v1/predict.grpc.pb.h"
#include "client/lib/client_options.h"
#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

namespace chainfleet {

// SUCCEEDED, SUCCEEDED_EARLY, FAILED or CANCELLED.
bool IsFinal(v1::Job::State state);

// The file at `path`, or `content` under the last component of `path`. A file of a data set may be a URI.
struct FileToSend {
  std::string path;
  std::optional<std::string> content = {};
};

// Not thread-safe. `job` arguments are ids, names or "@latest"; predictions also accept aliases.
class Client {
 public:
  // `sleep` waits between attempts; `clock` is not owned.
  Client(ClientOptions options, const Clock* clock, std::function<void(absl::Duration)> sleep);
  ~Client();

  absl::StatusOr<v1::ServerInfo> GetServerInfo();
  absl::StatusOr<std::vector<v1::Worker>> ListWorkers();
  // Tells the worker to drain and returns it. Chains that it still holds after `limit` are taken from it.
  absl::StatusOr<v1::Worker> DrainWorker(const std::string& worker, absl::Duration limit);

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request);
  absl::StatusOr<v1::Job> GetJob(const std::string& job);
  // All pages, newest first. `state`: "" or the name of a Job.State.
  absl::StatusOr<std::vector<v1::Job>> ListJobs(const std::string& state);
  absl::StatusOr<v1::Job> SetIntent(const std::string& job, v1::Job::Intent intent);
  absl::StatusOr<v1::Job> ScaleJob(const std::string& job, int32_t chains);

  // Calls `on_change` with each state of the job until it is final. Reopens a broken stream as long as some server has
  // answered within ClientOptions::patience, and one whose token expired as long as there are new tokens.
  // DEADLINE_EXCEEDED after `timeout`.
  absl::Status WatchJob(const std::string& job, absl::Duration timeout,
                        const std::function<void(const v1::Job&)>& on_change);

  // Events of the job with a number above `after`, oldest first.
  absl::StatusOr<std::vector<v1::Event>> ListEvents(const std::string& job, int64_t after);

  // The newest traced values of a quantity. NOT_FOUND / NOT_TRACED.
  absl::StatusOr<v1::Traces> GetTraces(const std::string& job, const std::string& quantity);

  // Makes a version of the draws committed so far.
  absl::StatusOr<v1::Snapshot> CreateSnapshot(const std::string& job);
  // All pages, by number.
  absl::StatusOr<std::vector<v1::Snapshot>> ListSnapshots(const std::string& job);
  absl::Status DeleteSnapshot(const std::string& job, int64_t version);

  // `version` 0 means the newest.
  absl::StatusOr<v1::Alias> SetAlias(const std::string& name, const std::string& job, int64_t version);
  // All pages, by name.
  absl::StatusOr<std::vector<v1::Alias>> ListAliases();
  absl::Status DeleteAlias(const std::string& name);

  // Committed segments in (chain, index) order, all pages. `resumes` gets the resume points, if the request asks for
  // them.
  absl::StatusOr<std::vector<v1::SegmentRecord>> ListSegments(
      const v1::ListSegmentsRequest& request, std::vector<v1::ListSegmentsResponse::ChainResume>* resumes = nullptr);
  // The bytes of the segment's object. DATA_LOSS: size or SHA-256 differ from the record.
  absl::StatusOr<std::string> ReadSegment(const v1::SegmentRecord& record);

  // Sends the files one after the other; of files with "://" only the URI. `on_sent` gets the number of bytes sent so
  // far. `header` gives name and options; the number of files is filled in.
  absl::StatusOr<v1::Dataset> PutDataset(const v1::PutDatasetRequest::Header& header,
                                         const std::vector<FileToSend>& files,
                                         const std::function<void(int64_t)>& on_sent);
  absl::StatusOr<std::vector<v1::Dataset>> ListDatasets();
  // Rows as stored, in the requested order: at most 15 MiB, counting 16 bytes per row besides its inputs.
  absl::StatusOr<v1::DatasetRowValues> ReadRows(const std::string& dataset, const std::vector<int64_t>& rows);
  absl::Status DeleteDataset(const std::string& name);
  absl::StatusOr<v1::Dataset> ShareDataset(const v1::ShareRequest& request);

  // Sends a file of a network or of weights; of a path with "://" only the URI.
  absl::StatusOr<v1::StoredModel> PutModel(const std::string& name, const FileToSend& file,
                                           const std::function<void(int64_t)>& on_sent);
  absl::StatusOr<std::vector<v1::StoredModel>> ListModels();
  absl::Status DeleteModel(const std::string& name);
  absl::StatusOr<v1::StoredModel> ShareModel(const v1::ShareRequest& request);

  // For admins. A request with the same SHA-256 again returns the token that the first one made.
  absl::StatusOr<v1::Token> CreateToken(const v1::CreateTokenRequest& request);
  // All pages, by id, with expired ones.
  absl::StatusOr<std::vector<v1::Token>> ListTokens();
  absl::Status RevokeToken(const std::string& id);
  // Calls `on_line` with each line of the audit log, oldest first, until it fails.
  absl::Status ReadAudit(const std::function<absl::Status(const std::string& line)>& on_line);

  // Calls `copy` with the names of a server's copies, which the server keeps with all objects until `copy` returns. If
  // the server ends the call before, `copy` runs again with another copy. For admins.
  absl::Status Backup(const std::function<absl::Status(const v1::BackupCopy&)>& copy);
  // Writes an object, or a file of a BackupCopy, to the file `path`. NOT_FOUND. FAILED_PRECONDITION: cannot be written.
  absl::Status ReadObject(const std::string& name, bool is_copy, const std::string& path);
  // Sends these files of a backup's folder to a server that has no job, data set or model. `on_sent` gets the bytes
  // sent so far. For admins. NOT_EMPTY.
  absl::Status Restore(const std::string& folder, const std::vector<std::string>& files,
                       const std::function<void(int64_t)>& on_sent);

  absl::StatusOr<v1::PredictResponse> Predict(const v1::PredictRequest& request);

  // Evaluations run on the server by themselves. A request_id makes it safe to repeat the start.
  absl::StatusOr<v1::EvaluationOperation> StartEvaluation(const v1::EvaluateRequest& request);
  absl::StatusOr<v1::EvaluationOperation> GetEvaluation(const std::string& id);
  absl::StatusOr<v1::EvaluationOperation> CancelEvaluation(const std::string& id);
  // All pages, newest first, without results; of all jobs if `job` is empty.
  absl::StatusOr<std::vector<v1::EvaluationOperation>> ListEvaluations(const std::string& job);
  // Waits for the result, also over restarts of the server, as long as some server has answered within
  // ClientOptions::patience. ABORTED with the evaluation's error if it does not succeed. DEADLINE_EXCEEDED after
  // `timeout`.
  absl::StatusOr<v1::Evaluation> WaitEvaluation(
      const std::string& id, absl::Duration timeout,
      const std::function<void(const v1::EvaluateUpdate::Progress&)>& on_progress);
  // Starts an evaluation and waits for it.
  absl::StatusOr<v1::Evaluation> Evaluate(const v1::EvaluateRequest& request,
                                          const std::function<void(const v1::EvaluateUpdate::Progress&)>& on_progress);

 private:
  using Attempt = std::function<absl::Status(grpc::ClientContext*)>;

  // Runs `attempt` until it returns something other than UNAVAILABLE, or until the next attempt would start after
  // `timeout`, or after ClientOptions::timeout of UNAVAILABLE only.
  absl::Status Repeat(absl::Duration timeout, const Attempt& attempt);
  // `status` of a call that deletes. After an attempt that failed, NOT_FOUND says that this attempt may have deleted
  // the thing. It stays an error, because the name may be wrong instead.
  absl::Status Deleted(const absl::Status& status) const;
  // Makes one attempt of the call `id` with token and deadline, and another if the server refuses the token and there
  // is a new one. Selects the next address after UNAVAILABLE.
  absl::Status TryOnce(const std::string& id, absl::Duration timeout, const Attempt& attempt);
  absl::Status TryWithToken(const std::string& token, const std::string& id, absl::Duration timeout,
                            const Attempt& attempt);
  std::string NextCallId();
  // The backoff of one call, with its own jitter.
  Backoff NextBackoff();
  template <typename Service, typename Request, typename Reply>
  absl::StatusOr<Reply> Call(grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                             const Request& request);
  template <typename Service>
  std::unique_ptr<typename Service::Stub> Stub();
  // A channel to the current address.
  std::shared_ptr<grpc::Channel> Channel();

  ClientOptions options_;  // `token`: the one that renew_token returned last, if any
  const Clock* const clock_;
  const std::function<void(absl::Duration)> sleep_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;  // one per address, made on first use
  size_t current_ = 0;
  uint64_t backoffs_ = 0, calls_ = 0;
  bool repeated_ = false;  // the last call had an attempt that failed with UNAVAILABLE
};

}  // namespace chainfleet
