#include "core/store/blob_store/s3_blob_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/store/blob_store/s3_reply.h"

namespace chainfleet {
namespace {

constexpr int kPreconditionFailed = 412, kRangeNotSatisfiable = 416, kNotImplemented = 501;
constexpr char kProbe[] = ".conditional-put";  // no object's name starts with a dot
constexpr absl::Duration kMaxValidFor = absl::Hours(7 * 24);

absl::Status Exists(const std::string& name) {
  return absl::AlreadyExistsError(absl::StrCat("object ", name, " exists with other bytes"));
}

std::map<std::string, std::string> Condition(bool unless_present) {
  if (!unless_present) return {};
  return {{"if-none-match", "*"}};
}

}  // namespace

S3BlobStore::S3BlobStore(std::unique_ptr<S3Client> client, const Options& options)
    : client_(std::move(client)), options_(options) {}

absl::StatusOr<std::unique_ptr<S3BlobStore>> S3BlobStore::Open(std::unique_ptr<S3Client> client,
                                                               const Options& options) {
  std::unique_ptr<S3BlobStore> store(new S3BlobStore(std::move(client), options));
  CHAINFLEET_RETURN_IF_ERROR(store->CheckConditionalPut());
  return store;
}

absl::Status S3BlobStore::CheckConditionalPut() const {
  const S3Call probe{
      .method = "PUT", .key = client_->settings().prefix + kProbe, .headers = Condition(/*unless_present=*/true)};
  // The object may exist from an earlier start or another server. The second put is sure to find it.
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHAINFLEET_ASSIGN_OR_RETURN(const HttpReply reply, client_->Run(probe));
    if (reply.code == kPreconditionFailed) return absl::OkStatus();
    if (reply.code == kNotImplemented) break;
    CHAINFLEET_RETURN_IF_ERROR(client_->StatusOf(probe, reply));
  }
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "the S3 server does not know conditional puts (a second PUT of s3://",
                        client_->settings().bucket, "/", probe.key,
                        " with If-None-Match: * was not refused): draws could be overwritten there; use a server or a "
                        "release that knows them")),
                    "NO_CONDITIONAL_PUT");
}

absl::StatusOr<std::string> S3BlobStore::KeyOf(const std::string& name) const {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  return client_->settings().prefix + name;
}

absl::Status S3BlobStore::Put(const std::string& name, const ByteSource& content) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  for (int attempt = 0; attempt < limits::kS3Attempts; ++attempt) {
    const absl::Status written = Write(key, content, IfPresent::kKeep);
    if (!absl::IsAlreadyExists(written)) return written;
    // An attempt whose reply was lost may have written the object.
    const absl::Status same = CompareObject(*this, name, content, options_.part_bytes);
    if (!absl::IsNotFound(same)) return same;
  }
  return absl::UnavailableError(absl::StrCat("object ", name, " comes and goes in S3: somebody else deletes it"));
}

absl::Status S3BlobStore::Replace(const std::string& name, const ByteSource& content) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  return Write(key, content, IfPresent::kReplace);
}

// Returns ALREADY_EXISTS only for kKeep, also for equal bytes.
absl::Status S3BlobStore::Write(const std::string& key, const ByteSource& content, IfPresent if_present) const {
  if (content.size_bytes() > options_.multipart_bytes) return WriteParts(key, content, if_present);
  std::string buffer;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string_view all, content.Range(0, content.size_bytes(), &buffer));
  const S3Call put{.method = "PUT", .key = key, .headers = Condition(if_present == IfPresent::kKeep), .body = all};
  CHAINFLEET_ASSIGN_OR_RETURN(const HttpReply reply, client_->Run(put));
  return reply.code == kPreconditionFailed ? Exists(key) : client_->StatusOf(put, reply);
}

absl::Status S3BlobStore::WriteParts(const std::string& key, const ByteSource& content, IfPresent if_present) const {
  if (if_present == IfPresent::kKeep) {
    const absl::Status present = client_->Succeed({.method = "HEAD", .key = key}).status();
    if (present.ok()) return Exists(key);
    if (!absl::IsNotFound(present)) return present;
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const HttpReply created,
                              client_->Succeed({.method = "POST", .key = key, .query = {{"uploads", ""}}}));
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string upload, ReadS3UploadId(created.body));
  const absl::StatusOr<std::vector<std::string>> etags = PutParts(key, upload, content);
  const absl::Status status = etags.ok() ? Complete(key, upload, *etags, if_present) : etags.status();
  if (!status.ok()) Abort(key, upload);
  return status;
}

absl::StatusOr<std::vector<std::string>> S3BlobStore::PutParts(const std::string& key, const std::string& upload,
                                                               const ByteSource& content) const {
  std::vector<std::string> etags;
  const auto put = [&](std::string_view part) -> absl::Status {
    const std::string number = absl::StrCat(etags.size() + 1);
    CHAINFLEET_ASSIGN_OR_RETURN(
        HttpReply reply,
        client_->Succeed(
            {.method = "PUT", .key = key, .query = {{"partNumber", number}, {"uploadId", upload}}, .body = part}));
    if (reply.headers["etag"].empty()) return absl::InternalError(absl::StrCat("S3 gave part ", number, " no ETag"));
    etags.push_back(reply.headers["etag"]);
    return absl::OkStatus();
  };
  CHAINFLEET_RETURN_IF_ERROR(content.ForEachPart(options_.part_bytes, put));
  return etags;
}

absl::Status S3BlobStore::Complete(const std::string& key, const std::string& upload,
                                   const std::vector<std::string>& etags, IfPresent if_present) const {
  const std::string list = S3PartList(etags);
  S3Call call{.method = "POST",
              .key = key,
              .query = {{"uploadId", upload}},
              .headers = Condition(if_present == IfPresent::kKeep),
              .body = list,
              .patience = limits::kS3CompleteTimeout};
  CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, client_->Run(call));
  if (reply.code == kNotImplemented && if_present == IfPresent::kKeep) {
    call.headers.clear();
    CHAINFLEET_ASSIGN_OR_RETURN(reply, client_->Run(call));
  }
  const S3Error error = ReadS3Error(reply.body);
  if (if_present == IfPresent::kKeep && (reply.code == kPreconditionFailed || error.code == "NoSuchUpload")) {
    return Exists(key);  // an attempt whose reply was lost may have completed the upload
  }
  CHAINFLEET_RETURN_IF_ERROR(client_->StatusOf(call, reply));
  // S3 replies 200 before it joins the parts, and reports the outcome in the body.
  if (error.code.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("S3 could not join the parts of s3://", client_->settings().bucket, "/",
                                             key, ": ", error.code, ": ", error.message));
}

void S3BlobStore::Abort(const std::string& key, const std::string& upload) const {
  const absl::Status aborted =
      client_->Succeed({.method = "DELETE", .key = key, .query = {{"uploadId", upload}}}).status();
  if (aborted.ok() || absl::IsNotFound(aborted)) return;
  Log(LogLevel::kWarning, "multipart upload not aborted: it uses storage until the bucket's lifecycle rule removes it",
      {{"object", key}, {"upload", upload}, {"error", aborted.ToString()}});
}

absl::StatusOr<std::string> S3BlobStore::Get(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  CHAINFLEET_ASSIGN_OR_RETURN(
      HttpReply reply, client_->Succeed({.method = "GET", .key = key, .max_reply_bytes = limits::kMaxBlobBytes}));
  return std::move(reply.body);
}

absl::StatusOr<std::string> S3BlobStore::GetRange(const std::string& name, int64_t offset, int64_t length) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  length = std::min(length, limits::kMaxBlobBytes);
  if (length <= 0) return std::string();
  const S3Call get{.method = "GET",
                   .key = key,
                   .headers = {{"range", absl::StrCat("bytes=", offset, "-", offset + length - 1)}},
                   .max_reply_bytes = std::max(length, limits::kS3MaxReplyBytes)};
  CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, client_->Run(get));
  if (reply.code == kRangeNotSatisfiable) return std::string();  // the range begins at or after the end
  CHAINFLEET_RETURN_IF_ERROR(client_->StatusOf(get, reply));
  return std::move(reply.body);
}

absl::StatusOr<int64_t> S3BlobStore::SizeBytes(const std::string& name) const {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  CHAINFLEET_ASSIGN_OR_RETURN(HttpReply reply, client_->Succeed({.method = "HEAD", .key = key}));
  int64_t size = 0;
  if (absl::SimpleAtoi(reply.headers["content-length"], &size)) return size;
  return absl::InternalError(absl::StrCat("S3 did not say how long object ", name, " is"));
}

absl::StatusOr<std::vector<std::string>> S3BlobStore::List(const std::string& prefix) const {
  std::vector<std::string> names;
  CHAINFLEET_RETURN_IF_ERROR(ListPages(prefix, [&](const std::vector<std::string>& page) -> absl::Status {
    if (names.size() + page.size() > limits::kS3MaxListed) {
      return absl::ResourceExhaustedError(absl::StrCat("more than ", limits::kS3MaxListed, " objects below ", prefix));
    }
    names.insert(names.end(), page.begin(), page.end());
    return absl::OkStatus();
  }));
  std::sort(names.begin(), names.end());  // servers that keep folders list a folder at its name's position
  return names;
}

absl::Status S3BlobStore::ListPages(const std::string& prefix, const PageVisitor& visit) const {
  const std::string& own = client_->settings().prefix;
  S3Call call{.method = "GET", .key = "", .query = {{"list-type", "2"}, {"prefix", own + prefix}}};
  for (;;) {
    CHAINFLEET_ASSIGN_OR_RETURN(const HttpReply reply, client_->Succeed(call));
    CHAINFLEET_ASSIGN_OR_RETURN(const S3Listing listing, ReadS3Listing(reply.body));
    std::vector<std::string> names;
    for (const std::string& key : listing.keys) {
      if (key.starts_with(own) && CheckBlobName(key.substr(own.size())).ok()) names.push_back(key.substr(own.size()));
    }
    if (!names.empty()) CHAINFLEET_RETURN_IF_ERROR(visit(names));
    if (listing.continuation_token.empty()) return absl::OkStatus();
    std::string& token = call.query["continuation-token"];
    if (token == listing.continuation_token) {
      return absl::InternalError(absl::StrCat("S3 repeats a page of its list of objects below ", own, prefix,
                                              ": it gives the continuation token ", token, " twice"));
    }
    token = listing.continuation_token;
  }
}

absl::Status S3BlobStore::Delete(const std::string& name) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string key, KeyOf(name));
  const absl::Status status = client_->Succeed({.method = "DELETE", .key = key}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<S3SignedUrl> SignS3Put(const S3Client& client, const std::string& name, const std::string& sha256,
                                      int64_t size_bytes, absl::Duration valid_for) {
  CHAINFLEET_RETURN_IF_ERROR(CheckBlobName(name));
  if (sha256.size() != 64 || size_bytes < 0 || valid_for < absl::Seconds(1) || valid_for > kMaxValidFor) {
    return absl::InvalidArgumentError(absl::StrCat("no signature for a put of ", name, ": SHA-256 \"", sha256, "\", ",
                                                   size_bytes, " bytes, for ", absl::FormatDuration(valid_for)));
  }
  return client.Presign({.method = "PUT",
                         .key = client.settings().prefix + name,
                         // some servers read it here, others in the header
                         .query = {{"X-Amz-Content-Sha256", sha256}},
                         .headers = {{"content-length", absl::StrCat(size_bytes)},
                                     {"if-none-match", "*"},
                                     {"x-amz-content-sha256", sha256}}},
                        sha256, valid_for);
}

}  // namespace chainfleet
