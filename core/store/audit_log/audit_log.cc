#include "core/store/audit_log/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/file_system.h"
#include "core/store/audit_log/audit_chain.h"
#include "core/store/draw_codec/sha256.h"
#include "nlohmann/json.hpp"

namespace chainfleet {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kPageBytes = 256 * 1024;  // more than the longest line
constexpr size_t kLongestValue = 300;
constexpr absl::Duration kTellEvery = absl::Seconds(10);
constexpr char kPrefix[] = "audit-", kSuffix[] = ".jsonl";

std::string NoDigest() { return std::string(64, '0'); }

std::string Dump(const ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

// Bounds what a text takes in the log, where JSON writes a control character as six.
void Shorten(ordered_json* text) {
  std::string kept = text->get_ref<const std::string&>().substr(0, kLongestValue);
  while (Dump(kept).size() > kLongestValue + 2) kept.resize(kept.size() - 1 - kept.size() / 8);  // with its quotes
  *text = kept;
}

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

absl::Status BadPage() {
  return WithReason(absl::InvalidArgumentError("page_token: these lines are deleted, or never were: begin without one"),
                    "BAD_PAGE_TOKEN");
}

// The number in the name of a file of the log; 0 for other names.
int64_t NumberOf(absl::string_view name) {
  int64_t number = 0;
  const bool is_ours =
      absl::ConsumePrefix(&name, kPrefix) && absl::ConsumeSuffix(&name, kSuffix) && absl::SimpleAtoi(name, &number);
  return is_ours ? number : 0;
}

}  // namespace

absl::StatusOr<std::map<int64_t, std::string>> ListAuditFiles(const std::string& folder) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<std::string> names, RealFileSystem()->ListFiles(folder));
  std::map<int64_t, std::string> files;
  for (const std::string& name : names) {
    if (const int64_t number = NumberOf(name); number > 0) files[number] = name;
  }
  return files;
}

AuditLog::AuditLog(std::string folder, const Clock* clock, Options options)
    : folder_(std::move(folder)), clock_(clock), options_(std::move(options)), digest_(NoDigest()) {}

AuditLog::~AuditLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string AuditLog::PathOf(int64_t number) const {
  return absl::StrFormat("%s/%s%06d%s", folder_, kPrefix, number, kSuffix);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& folder, const Clock* clock,
                                                         Options options) {
  CHAINFLEET_RETURN_IF_ERROR(CreateFoldersSynced(folder));
  std::unique_ptr<AuditLog> log(new AuditLog(folder, clock, std::move(options)));
  const MutexLock lock(&log->mutex_);
  CHAINFLEET_RETURN_IF_ERROR(log->Continue());
  return log;
}

absl::Status AuditLog::Continue() {
  CHAINFLEET_ASSIGN_OR_RETURN(const auto files, ListAuditFiles(folder_));
  if (files.empty()) return OpenFile(1);
  oldest_ = files.begin()->first;
  CHAINFLEET_RETURN_IF_ERROR(OpenFile(files.rbegin()->first));
  // A crash right after a new file was begun leaves it empty; the newest line is in the file before.
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    const int64_t number = file->first;
    CHAINFLEET_ASSIGN_OR_RETURN(const int64_t bytes, RealFileSystem()->SizeBytes(PathOf(number)));
    const int64_t begin = std::max<int64_t>(bytes - kPageBytes, 0);
    CHAINFLEET_ASSIGN_OR_RETURN(std::string tail, RealFileSystem()->ReadRange(PathOf(number), begin, kPageBytes));
    const size_t whole = tail.rfind('\n') == std::string::npos ? 0 : tail.rfind('\n') + 1;
    if (number == newest_ && whole < tail.size()) {
      size_ = begin + static_cast<int64_t>(whole);
      if (ftruncate(descriptor_, size_) != 0) return Failed("shorten", PathOf(newest_));
      Log(LogLevel::kWarning, "removed the part of a line that a crash left in the audit log",
          {{"file", PathOf(newest_)}});
    }
    if (whole == 0) continue;
    tail.resize(whole - 1);
    const size_t before = tail.rfind('\n');
    const std::string line = before == std::string::npos ? tail : tail.substr(before + 1);
    AuditChain newest;
    if (!newest.Follow(line).ok()) {
      return WithReason(absl::FailedPreconditionError(
                            absl::StrCat("the last line of ", PathOf(number),
                                         " is not one of the audit log: move the folder away to begin a new log")),
                        "AUDIT_LOG");
    }
    seq_ = newest.last();
    digest_ = newest.digest();
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status AuditLog::OpenFile(int64_t number) {
  const int opened = open(PathOf(number).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (opened < 0) return Failed("open", PathOf(number));
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = opened;
  newest_ = number;
  struct stat file {};
  if (fstat(descriptor_, &file) != 0) return Failed("look at", PathOf(number));
  size_ = file.st_size;
  return absl::OkStatus();
}

absl::Status AuditLog::Write(const std::string& line) {
  if (size_ >= options_.file_bytes) {
    fsync(descriptor_);
    CHAINFLEET_RETURN_IF_ERROR(OpenFile(newest_ + 1));
    for (; newest_ - oldest_ >= options_.files; ++oldest_) unlink(PathOf(oldest_).c_str());
  }
  const ssize_t written = write(descriptor_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    size_ += written;
    return absl::OkStatus();
  }
  const absl::Status status = Failed("write to", PathOf(newest_));
  if (written > 0 && ftruncate(descriptor_, size_) != 0) size_ = options_.file_bytes;  // go on in a new file
  return status;
}

void AuditLog::Append(const std::vector<LogField>& fields) {
  absl::Status status;
  bool tell = false;
  {
    const MutexLock lock(&mutex_);
    ordered_json line = {{"seq", seq_ + 1}, {"at", absl::FormatTime(clock_->Wall(), absl::UTCTimeZone())}};
    for (const LogField& field : fields) {
      std::visit([&](const auto& value) { line[field.key] = value; }, field.value);
      if (ordered_json& value = line[field.key]; value.is_string()) Shorten(&value);
    }
    line["previous"] = digest_;
    const std::string text = Dump(line);
    status = Write(text + "\n");
    if (status.ok()) {
      ++seq_;
      digest_ = Sha256Hex(text);
      return;
    }
    tell = clock_->Monotonic() - told_ >= kTellEvery;
    if (tell) told_ = clock_->Monotonic();
  }
  if (options_.on_failure) options_.on_failure();
  if (tell) Log(LogLevel::kError, "a line of the audit log was lost", {{"error", status.ToString()}});
}

absl::StatusOr<AuditLog::Page> AuditLog::Read(const std::string& from, const std::optional<std::string>& tenant) const {
  int64_t number = 0, offset = 0, newest = 0;
  {
    const MutexLock lock(&mutex_);
    number = oldest_;
    newest = newest_;
  }
  if (!from.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(from, ':');
    const bool valid = parts.size() == 2 && absl::SimpleAtoi(parts[0], &number) && absl::SimpleAtoi(parts[1], &offset);
    if (!valid || number < 1 || number > newest || offset < 0) return BadPage();
  }
  const absl::StatusOr<std::string> read = RealFileSystem()->ReadRange(PathOf(number), offset, kPageBytes);
  if (absl::IsNotFound(read.status())) return BadPage();
  CHAINFLEET_RETURN_IF_ERROR(read.status());
  const size_t whole = read->rfind('\n') == std::string::npos ? 0 : read->rfind('\n') + 1;
  Page page;
  page.lines = absl::StrSplit(read->substr(0, whole), '\n', absl::SkipEmpty());
  if (tenant) {
    // No value of another field can have this text, because JSON escapes quotes in values.
    const std::string field = absl::StrCat("\"tenant\":\"", *tenant, "\"");
    std::erase_if(page.lines, [&](const std::string& line) { return !absl::StrContains(line, field); });
  }
  if (static_cast<int64_t>(read->size()) == kPageBytes && whole > 0) {
    page.next = absl::StrCat(number, ":", offset + static_cast<int64_t>(whole));
  } else if (number < newest) {
    page.next = absl::StrCat(number + 1, ":0");
  }
  return page;
}

}  // namespace chainfleet
