#include "client/lib/client.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/lib/client_calls.h"
#include "core/base/limits.h"
#include "core/base/percent.h"
#include "core/base/rng_key.h"
#include "core/store/draw_codec/sha256.h"
#include "core/wire/channel_credentials.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/time.h"

namespace chainfleet {
namespace {

// A data set may be large, and the server decodes it before it answers.
constexpr uint64_t kCallIds = 0;                           // backoffs count from 1
constexpr absl::Duration kLongestWait = absl::Seconds(1);  // between attempts; a takeover takes several seconds
constexpr absl::Duration kTellAfter = absl::Seconds(1);
constexpr absl::Duration kHeard = absl::Seconds(5);  // no attempt takes this long to find that no server listens

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const TlsFiles& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(limits::kMaxMessageBytes));
  // A watch may be silent for long, and the client must leave a frozen or disconnected leader before a usual call's
  // deadline. Only keepalive detects both. Servers accept pings every 10 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 12'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  // This client has its own backoff; the channel's would fail the attempts of the next seconds without trying.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a new channel opens its own connection
  return grpc::CreateCustomChannel(address, ChannelCredentialsOf(tls), arguments);
}

// Removes the preamble of gRPC's message: "... Connection refused".
std::string LastError(const absl::Status& status) {
  const std::string message(status.message());
  constexpr char kPreamble[] = "last error: UNKNOWN: ";
  const size_t at = message.rfind(kPreamble);
  return at == std::string::npos ? message : message.substr(at + sizeof(kPreamble) - 1);
}

// Returns what to do about an error of connecting.
const char* RemedyFor(const std::string& error, const TlsFiles& tls) {
  if (tls.any() && (absl::StrContains(error, "ertificate") || absl::StrContains(error, "erification"))) {
    return "its certificate is not signed by an authority of CHAINFLEET_CA_FILE, or names another host; or it wants "
           "one of yours (CHAINFLEET_CERT_FILE)";
  }
  if (absl::StrContains(error, "handshake") || absl::StrContains(error, "reset") ||
      absl::StrContains(error, "closed")) {
    return tls.any() ? "does it speak TLS? If not, unset CHAINFLEET_CA_FILE and its like"
                     : "does it speak TLS? Then set CHAINFLEET_CA_FILE to the certificates of its authority";
  }
  return "start one with `chainfleet up`, or say where it is with --address or CHAINFLEET_ADDRESS";
}

// A stream of `bytes`, without a copy.
class ViewOf final : public std::streambuf {
 public:
  explicit ViewOf(const std::string& bytes) {
    char* begin = const_cast<char*>(bytes.data());
    setg(begin, begin, begin + bytes.size());
  }
};

// Writes one file of an upload: `request`, its first message, and then its bytes. Returns false if the server closed
// the stream; its status says why.
template <typename Request>
bool SendBytes(std::istream* file, Request request, grpc::ClientWriter<Request>* writer, int64_t* sent,
               const std::function<void(int64_t)>& on_sent) {
  bool open = writer->Write(request);
  std::string* data = request.mutable_data();
  while (open) {
    data->resize(limits::kChunkBytes);
    file->read(data->data(), limits::kChunkBytes);
    data->resize(static_cast<size_t>(file->gcount()));
    if (data->empty()) break;
    open = writer->Write(request);
    on_sent(*sent += static_cast<int64_t>(data->size()));
  }
  return open;
}

// As SendBytes, for a file; `begin` makes the first message from its size.
template <typename Request>
absl::StatusOr<bool> SendFile(const FileToSend& source, const std::function<Request(int64_t size)>& begin,
                              grpc::ClientWriter<Request>* writer, int64_t* sent,
                              const std::function<void(int64_t)>& on_sent) {
  if (source.content) {
    ViewOf view(*source.content);
    std::istream content(&view);
    return SendBytes(&content, begin(static_cast<int64_t>(source.content->size())), writer, sent, on_sent);
  }
  std::ifstream file(source.path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (!file.seekg(0)) return absl::NotFoundError(absl::StrCat("cannot read ", source.path));
  const bool open = SendBytes(&file, begin(size), writer, sent, on_sent);
  if (file.bad()) return absl::InternalError(absl::StrCat("reading ", source.path, " failed"));
  return open;
}

// Ends an upload whose last file was `sent`, or returns that file's error.
template <typename Request>
absl::Status FinishUpload(const absl::StatusOr<bool>& sent, grpc::ClientContext* context,
                          grpc::ClientWriter<Request>* writer) {
  if (!sent.ok()) {
    context->TryCancel();  // the server must not take a partial upload for a whole one
    writer->Finish();
    return sent.status();
  }
  if (*sent) writer->WritesDone();
  return FromGrpc(writer->Finish());
}

}  // namespace

bool IsFinal(v1::Job::State state) {
  return state == v1::Job::SUCCEEDED || state == v1::Job::SUCCEEDED_EARLY || state == v1::Job::FAILED ||
         state == v1::Job::CANCELLED;
}

Client::Client(ClientOptions options, const Clock* clock, std::function<void(absl::Duration)> sleep)
    : options_(std::move(options)), clock_(clock), sleep_(std::move(sleep)), channels_(options_.addresses.size()) {}

Client::~Client() = default;

std::shared_ptr<grpc::Channel> Client::Channel() {
  std::shared_ptr<grpc::Channel>& channel = channels_[current_];
  if (channel == nullptr) channel = MakeChannel(options_.addresses[current_], options_.tls);
  return channel;
}

absl::Status Client::TryOnce(const std::string& id, absl::Duration timeout, const Attempt& attempt) {
  const absl::Duration end = clock_->Monotonic() + timeout;
  const std::string token = *options_.token.Current();
  absl::Status status = TryWithToken(token, id, timeout, attempt);
  if (!absl::IsUnauthenticated(status)) return status;
  absl::StatusOr<std::string> renewed = *options_.token.Current();
  if (options_.renew_token) renewed = options_.renew_token(token);
  if (!renewed.ok() || *renewed == token) return status;
  if (options_.renew_token) options_.token = *renewed;
  return TryWithToken(*renewed, id, end - clock_->Monotonic(), attempt);
}

absl::Status Client::TryWithToken(const std::string& token, const std::string& id, absl::Duration timeout,
                                  const Attempt& attempt) {
  grpc::ClientContext context;
  if (timeout < absl::InfiniteDuration()) {
    // A time span instead of a point in time, so that the system clock is not read.
    context.set_deadline(gpr_time_from_millis(absl::ToInt64Milliseconds(timeout), GPR_TIMESPAN));
  }
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  context.AddMetadata(kRequestIdHeader, id);
  absl::Status status = ResetToUnavailable(attempt(&context));
  if (absl::IsDeadlineExceeded(status)) status = WithRequestId(std::move(status), id);  // often this client's own error
  const bool from_server = !RequestIdOf(status).empty() || !ReasonOf(status).empty();
  // A channel that failed answers with its last error until it is connected, and connects only while a call waits.
  if (absl::IsUnavailable(status) && !from_server) channels_[current_] = nullptr;
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) current_ = (current_ + 1) % channels_.size();
  if (absl::IsUnavailable(status) && !from_server) {
    return absl::UnavailableError(absl::StrCat("no chainfleet server answers at ",
                                               absl::StrJoin(options_.addresses, ", "), " (", LastError(status),
                                               "): ", RemedyFor(LastError(status), options_.tls)));
  }
  return status;
}

// 32 hex digits, like a trace id.
std::string Client::NextCallId() {
  const RngKey key = Fold(Fold(RngKey{options_.seed}, kCallIds), ++calls_);
  return absl::StrCat(absl::Hex(key.value, absl::kZeroPad16), absl::Hex(Fold(key, 0).value, absl::kZeroPad16));
}

absl::Status Client::Deleted(const absl::Status& status) const {
  if (!absl::IsNotFound(status) || !repeated_) return status;
  return Annotate(status, "the name is wrong, or an earlier attempt of this call has deleted it");
}

Backoff Client::NextBackoff() { return Backoff(Fold(RngKey{options_.seed}, ++backoffs_)); }

absl::Status Client::Repeat(absl::Duration timeout, const Attempt& attempt) {
  const absl::Duration end = clock_->Monotonic() + timeout;
  const std::string id = NextCallId();
  absl::Status outage;
  absl::Duration outage_began;
  bool told = false;
  for (Backoff backoff = NextBackoff();;) {
    const absl::Duration began = clock_->Monotonic();
    const absl::Status status = TryOnce(id, end - began, attempt);
    const absl::Duration ended = clock_->Monotonic();
    if (absl::IsDeadlineExceeded(status)) {
      if (!outage.ok() && ended - began < kHeard) return outage;  // the last attempt had no time left
      return Annotate(status, absl::StrCat("the server did not finish this within ", absl::FormatDuration(timeout),
                                           ": repeat it, or give it longer with --timeout"));
    }
    if (!absl::IsUnavailable(status)) {
      repeated_ = !outage.ok();
      return status;
    }
    // If a server accepted a part of a long transfer, it was reachable: the outage begins now.
    if (outage.ok() || ended - began >= kHeard) outage_began = ended;
    outage = status;
    const absl::Duration wait = std::min(backoff.Next(), kLongestWait);
    if (ended + wait >= std::min(end, outage_began + options_.timeout)) return status;
    if (!told && ended - outage_began >= kTellAfter) {
      told = true;
      options_.on_outage(status);
    }
    sleep_(wait);
  }
}

absl::StatusOr<v1::ServerInfo> Client::GetServerInfo() {
  return Call<v1::JobService>(&v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest());
}

absl::StatusOr<std::vector<v1::Worker>> Client::ListWorkers() {
  return AllPages<v1::Worker>(
      v1::ListWorkersRequest(),
      [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListWorkers, page); },
      [](auto& reply) { return reply.mutable_workers(); });
}

absl::StatusOr<v1::Worker> Client::DrainWorker(const std::string& worker, absl::Duration limit) {
  v1::DrainWorkerRequest request;
  request.set_worker(worker);
  request.set_deadline_seconds(absl::ToDoubleSeconds(limit));
  return Call<v1::JobService>(&v1::JobService::Stub::DrainWorker, request);
}

absl::StatusOr<v1::Job> Client::CreateJob(const v1::CreateJobRequest& request) {
  return Call<v1::JobService>(&v1::JobService::Stub::CreateJob, request);
}

absl::StatusOr<v1::Job> Client::GetJob(const std::string& job) {
  v1::GetJobRequest request;
  request.set_name(job);
  return Call<v1::JobService>(&v1::JobService::Stub::GetJob, request);
}

absl::StatusOr<std::vector<v1::Job>> Client::ListJobs(const std::string& state) {
  v1::ListJobsRequest request;
  request.set_state(state);
  return AllPages<v1::Job>(
      request, [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListJobs, page); },
      [](auto& reply) { return reply.mutable_jobs(); });
}

absl::StatusOr<v1::Job> Client::SetIntent(const std::string& job, v1::Job::Intent intent) {
  v1::SetIntentRequest request;
  request.set_name(job);
  request.set_intent(intent);
  return Call<v1::JobService>(&v1::JobService::Stub::SetIntent, request);
}

absl::StatusOr<v1::Job> Client::ScaleJob(const std::string& job, int32_t chains) {
  v1::ScaleJobRequest request;
  request.set_name(job);
  request.set_chains(chains);
  return Call<v1::JobService>(&v1::JobService::Stub::ScaleJob, request);
}

absl::Status Client::WatchJob(const std::string& job, absl::Duration timeout,
                              const std::function<void(const v1::Job&)>& on_change) {
  v1::WatchJobRequest request;
  request.set_name(job);
  v1::Job newest;
  bool heard = false;
  const absl::Duration began = clock_->Monotonic();
  const absl::Duration end = began + timeout;
  absl::Duration last_heard = began;
  const std::string id = NextCallId();
  bool accepted = false;  // the newest stream had a message, so the server took its token
  for (Backoff backoff = NextBackoff();;) {
    const absl::Duration opened = clock_->Monotonic();
    const absl::Status status = TryOnce(id, end - opened, [&](grpc::ClientContext* context) {
      accepted = false;
      const auto stub = Stub<v1::JobService>();
      const auto reader = stub->WatchJob(context, request);
      while (reader->Read(&newest)) {
        heard = accepted = true;
        backoff.Reset();
        last_heard = clock_->Monotonic();
        request.set_name(newest.id());  // a name may belong to a newer job when the stream is opened again
        on_change(newest);
      }
      return FromGrpc(reader->Finish());
    });
    if (heard && (IsFinal(newest.state()) || newest.state() == v1::Job::DELETING)) return absl::OkStatus();
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(absl::StrCat("job ", request.name(), " is still ",
                                                      heard ? v1::Job::State_Name(newest.state()) : "unheard of",
                                                      " after ", absl::FormatDuration(timeout)));
    }
    const bool expired = accepted && absl::IsUnauthenticated(status);
    if (!status.ok() && !absl::IsUnavailable(status) && !expired) return status;
    // A stream that stayed open had reached a server, even if the job was quiet: the outage begins now.
    if (clock_->Monotonic() - opened >= kHeard) last_heard = clock_->Monotonic();
    if (!heard && clock_->Monotonic() - began >= options_.timeout) return status;
    if (heard && clock_->Monotonic() - last_heard >= options_.patience) {
      return status.ok() ? absl::UnavailableError(absl::StrCat("the server keeps ending the watch of ", newest.id()))
                         : status;
    }
    sleep_(std::min(backoff.Next(), kLongestWait));
  }
}

absl::StatusOr<std::vector<v1::Event>> Client::ListEvents(const std::string& job, int64_t after) {
  v1::ListEventsRequest request;
  request.set_job(job);
  request.set_after(after);
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::ListEventsResponse reply,
                              Call<v1::JobService>(&v1::JobService::Stub::ListEvents, request));
  return std::vector<v1::Event>(reply.events().begin(), reply.events().end());
}

absl::StatusOr<v1::Traces> Client::GetTraces(const std::string& job, const std::string& quantity) {
  v1::GetTracesRequest request;
  request.set_job(job);
  request.set_quantity(quantity);
  return Call<v1::JobService>(&v1::JobService::Stub::GetTraces, request);
}

absl::StatusOr<std::vector<v1::SegmentRecord>> Client::ListSegments(
    const v1::ListSegmentsRequest& request, std::vector<v1::ListSegmentsResponse::ChainResume>* resumes) {
  return AllPages<v1::SegmentRecord>(
      request, [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListSegments, page); },
      [&](auto& reply) {
        if (resumes != nullptr)
          resumes->insert(resumes->end(), reply.resume_points().begin(), reply.resume_points().end());
        return reply.mutable_segments();
      });
}

absl::StatusOr<std::string> Client::ReadSegment(const v1::SegmentRecord& record) {
  const v1::BlobRef& object = record.segment().object();
  v1::ReadSegmentRequest request;
  request.set_job(record.chain().job());
  request.set_object(object.name());
  std::string bytes;
  CHAINFLEET_RETURN_IF_ERROR(Repeat(options_.timeout, [&](grpc::ClientContext* context) {
    bytes.clear();
    const auto stub = Stub<v1::JobService>();
    const auto reader = stub->ReadSegment(context, request);
    v1::Chunk chunk;
    while (reader->Read(&chunk)) bytes += chunk.data();
    return FromGrpc(reader->Finish());
  }));
  if (static_cast<int64_t>(bytes.size()) != object.size_bytes() || Sha256Hex(bytes) != object.sha256()) {
    return WithReason(
        absl::DataLossError(absl::StrCat("segment ", object.name(), " of chain ", record.chain().job(), "/",
                                         record.chain().index(), " does not match its SHA-256: ", bytes.size(),
                                         " bytes came, the record says ", object.size_bytes())),
        "DIGEST_MISMATCH");
  }
  return bytes;
}

absl::StatusOr<v1::Dataset> Client::PutDataset(const v1::PutDatasetRequest::Header& header,
                                               const std::vector<FileToSend>& files,
                                               const std::function<void(int64_t)>& on_sent) {
  v1::Dataset dataset;
  const absl::Duration limit = options_.transfer_timeout.value_or(kTransferTimeout);
  CHAINFLEET_RETURN_IF_ERROR(Repeat(limit, [&](grpc::ClientContext* context) -> absl::Status {
    const auto stub = Stub<v1::JobService>();
    const auto writer = stub->PutDataset(context, &dataset);
    v1::PutDatasetRequest first;
    *first.mutable_header() = header;
    first.mutable_header()->set_num_files(static_cast<int32_t>(files.size()));
    absl::StatusOr<bool> open = writer->Write(first);
    int64_t sent = 0;
    for (size_t i = 0; i < files.size() && open.ok() && *open; ++i) {
      const std::string& path = files[i].path;
      v1::PutDatasetRequest file;
      file.mutable_file()->set_file_name(path.substr(path.rfind('/') + 1));
      const auto begin = [&](int64_t size) {
        file.mutable_file()->set_size_bytes(size);
        return file;
      };
      if (IsUri(path)) file.mutable_file()->set_uri(path);
      open = IsUri(path) ? writer->Write(file)
                         : SendFile<v1::PutDatasetRequest>(files[i], begin, writer.get(), &sent, on_sent);
    }
    return FinishUpload(open, context, writer.get());
  }));
  return dataset;
}

absl::StatusOr<std::vector<v1::Dataset>> Client::ListDatasets() {
  return AllPages<v1::Dataset>(
      v1::ListDatasetsRequest(),
      [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListDatasets, page); },
      [](auto& reply) { return reply.mutable_datasets(); });
}

absl::StatusOr<v1::DatasetRowValues> Client::ReadRows(const std::string& dataset, const std::vector<int64_t>& rows) {
  v1::ReadRowsRequest request;
  request.set_dataset(dataset);
  request.mutable_rows()->Add(rows.begin(), rows.end());
  return Call<v1::JobService>(&v1::JobService::Stub::ReadRows, request);
}

absl::Status Client::DeleteDataset(const std::string& name) {
  v1::DeleteDatasetRequest request;
  request.set_name(name);
  return Deleted(Call<v1::JobService>(&v1::JobService::Stub::DeleteDataset, request).status());
}

absl::StatusOr<v1::Dataset> Client::ShareDataset(const v1::ShareRequest& request) {
  return Call<v1::JobService>(&v1::JobService::Stub::ShareDataset, request);
}

absl::StatusOr<v1::StoredModel> Client::PutModel(const std::string& name, const FileToSend& file,
                                                 const std::function<void(int64_t)>& on_sent) {
  v1::StoredModel model;
  const absl::Duration limit = options_.transfer_timeout.value_or(kTransferTimeout);
  CHAINFLEET_RETURN_IF_ERROR(Repeat(limit, [&](grpc::ClientContext* context) -> absl::Status {
    const auto stub = Stub<v1::JobService>();
    const auto writer = stub->PutModel(context, &model);
    v1::PutModelRequest header;
    header.mutable_header()->set_name(name);
    if (IsUri(file.path)) {
      header.mutable_header()->set_uri(file.path);
      return FinishUpload(writer->Write(header), context, writer.get());
    }
    const auto begin = [&](int64_t size) {
      header.mutable_header()->set_size_bytes(size);
      return header;
    };
    int64_t sent = 0;
    return FinishUpload(SendFile<v1::PutModelRequest>(file, begin, writer.get(), &sent, on_sent), context,
                        writer.get());
  }));
  return model;
}

absl::Status Client::Restore(const std::string& folder, const std::vector<std::string>& files,
                             const std::function<void(int64_t)>& on_sent) {
  const absl::Duration limit = options_.transfer_timeout.value_or(absl::InfiniteDuration());
  return Repeat(limit, [&](grpc::ClientContext* context) -> absl::Status {
    v1::RestoreResponse response;
    const auto stub = Stub<v1::AccessService>();
    const auto writer = stub->Restore(context, &response);
    absl::StatusOr<bool> open = true;
    int64_t sent = 0;
    for (size_t i = 0; i < files.size() && open.ok() && *open; ++i) {
      const auto begin = [&](int64_t size) {
        v1::RestoreRequest request;
        request.mutable_header()->set_file(files[i]);
        request.mutable_header()->set_size_bytes(size);
        return request;
      };
      open = SendFile<v1::RestoreRequest>({folder + "/" + files[i]}, begin, writer.get(), &sent, on_sent);
    }
    return FinishUpload(open, context, writer.get());
  });
}

absl::StatusOr<std::vector<v1::StoredModel>> Client::ListModels() {
  return AllPages<v1::StoredModel>(
      v1::ListModelsRequest(),
      [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListModels, page); },
      [](auto& reply) { return reply.mutable_models(); });
}

absl::Status Client::DeleteModel(const std::string& name) {
  v1::DeleteModelRequest request;
  request.set_name(name);
  return Deleted(Call<v1::JobService>(&v1::JobService::Stub::DeleteModel, request).status());
}

absl::StatusOr<v1::StoredModel> Client::ShareModel(const v1::ShareRequest& request) {
  return Call<v1::JobService>(&v1::JobService::Stub::ShareModel, request);
}

absl::StatusOr<v1::Snapshot> Client::CreateSnapshot(const std::string& job) {
  v1::CreateSnapshotRequest request;
  request.set_job(job);
  return Call<v1::JobService>(&v1::JobService::Stub::CreateSnapshot, request);
}

absl::StatusOr<std::vector<v1::Snapshot>> Client::ListSnapshots(const std::string& job) {
  v1::ListSnapshotsRequest request;
  request.set_job(job);
  return AllPages<v1::Snapshot>(
      request, [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListSnapshots, page); },
      [](auto& reply) { return reply.mutable_snapshots(); });
}

absl::Status Client::DeleteSnapshot(const std::string& job, int64_t version) {
  v1::DeleteSnapshotRequest request;
  request.set_job(job);
  request.set_version(version);
  return Deleted(Call<v1::JobService>(&v1::JobService::Stub::DeleteSnapshot, request).status());
}

absl::StatusOr<v1::Alias> Client::SetAlias(const std::string& name, const std::string& job, int64_t version) {
  v1::SetAliasRequest request;
  request.set_name(name);
  request.set_job(job);
  request.set_version(version);
  return Call<v1::JobService>(&v1::JobService::Stub::SetAlias, request);
}

absl::StatusOr<std::vector<v1::Alias>> Client::ListAliases() {
  return AllPages<v1::Alias>(
      v1::ListAliasesRequest(),
      [&](const auto& page) { return Call<v1::JobService>(&v1::JobService::Stub::ListAliases, page); },
      [](auto& reply) { return reply.mutable_aliases(); });
}

absl::Status Client::DeleteAlias(const std::string& name) {
  v1::DeleteAliasRequest request;
  request.set_name(name);
  return Deleted(Call<v1::JobService>(&v1::JobService::Stub::DeleteAlias, request).status());
}

absl::StatusOr<v1::PredictResponse> Client::Predict(const v1::PredictRequest& request) {
  return Call<v1::PredictService>(&v1::PredictService::Stub::Predict, request);
}

}  // namespace chainfleet
