#include "core/store/state_store/sql_group_rows.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/store/state_store/sql_query.h"

namespace chainfleet {
namespace {

// The elements of an SQL array, in its text form.
class ArrayText {
 public:
  void Add(const std::string& element) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",", "\"");
    for (const char c : element) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text_ += '"';
  }
  std::string text() const { return absl::StrCat("{", text_, "}"); }

 private:
  std::string text_;
};

// A chain whose rows the change will read.
struct Wanted {
  ChainId chain;
  int64_t first_index = -1;  // segment's first draw
  bool whole = false;        // with the bytes of its resume point
};

std::optional<Wanted> WantedBy(const StateChange& change) {
  if (const auto* grant = std::get_if<change::GrantLease>(&change)) return Wanted{grant->chain, -1, true};
  if (const auto* end = std::get_if<change::EndLease>(&change)) return Wanted{end->chain};
  if (const auto* retire = std::get_if<change::RetireChain>(&change)) return Wanted{retire->chain};
  if (const auto* commit = std::get_if<change::CommitProgress>(&change)) {
    return Wanted{commit->chain, commit->segment ? commit->segment->first_index : -1};
  }
  return std::nullopt;
}

}  // namespace

absl::Status SqlGroupRows::Expect(std::span<const StateChange> changes) {
  chains_.clear();
  intents_.clear();
  if (fetch_sql_.empty()) return absl::OkStatus();
  ArrayText jobs, chains, first_indices, wholes;
  std::map<ChainId, Wanted> wanted;
  for (const StateChange& change : changes) {
    const std::optional<Wanted> one = WantedBy(change);
    if (!one || !wanted.emplace(one->chain, *one).second) continue;
    jobs.Add(one->chain.job);
    chains.Add(absl::StrCat(one->chain.index));
    first_indices.Add(absl::StrCat(one->first_index));
    wholes.Add(absl::StrCat(int{one->whole}));
  }
  if (wanted.empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(
      std::vector<Ahead> read,
      sql::All<Ahead>(connection_, fetch_sql_, jobs.text(), chains.text(), first_indices.text(), wholes.text()));
  for (Ahead& ahead : read) {
    const ChainId chain = ahead.row.id;
    ahead.whole = wanted.at(chain).whole;
    ahead.first_index = wanted.at(chain).first_index;
    if (ahead.intent) intents_[chain.job] = *ahead.intent;
    chains_.emplace(chain, std::move(ahead));
  }
  return absl::OkStatus();
}

const SqlGroupRows::Ahead* SqlGroupRows::Find(const ChainId& id) const {
  const auto found = chains_.find(id);
  return found == chains_.end() ? nullptr : &found->second;
}

absl::StatusOr<std::optional<JobIntent>> SqlGroupRows::FindIntent(const std::string& id) {
  if (const auto found = intents_.find(id); found != intents_.end()) return found->second;
  return SqlRows::FindIntent(id);
}

absl::Status SqlGroupRows::UpdateJob(const JobRow& row) {
  intents_.erase(row.id);
  return SqlRows::UpdateJob(row);
}

absl::StatusOr<bool> SqlGroupRows::PurgeJob(const change::PurgeJob& page) {
  intents_.erase(page.job);
  std::erase_if(chains_, [&](const auto& chain) { return chain.first.job == page.job; });
  return SqlRows::PurgeJob(page);
}

absl::StatusOr<std::optional<ChainRow>> SqlGroupRows::FindChain(const ChainId& id) {
  if (const Ahead* ahead = Find(id)) return ahead->row;
  return SqlRows::FindChain(id);
}

absl::Status SqlGroupRows::PutChain(const ChainRow& row) {
  chains_.erase(row.id);
  return SqlRows::PutChain(row);
}

absl::StatusOr<std::optional<ResumePoint>> SqlGroupRows::FindResumePoint(const ChainId& id) {
  if (const Ahead* ahead = Find(id); ahead != nullptr && ahead->whole) return ahead->resume_point;
  return SqlRows::FindResumePoint(id);
}

absl::StatusOr<std::optional<BlobRef>> SqlGroupRows::FindResumeObject(const ChainId& id) {
  if (const Ahead* ahead = Find(id)) return ahead->resume_point ? ahead->resume_point->object : std::nullopt;
  return SqlRows::FindResumeObject(id);
}

absl::Status SqlGroupRows::PutResumePoint(const ChainId& id, const ResumePoint& point) {
  chains_.erase(id);
  return SqlRows::PutResumePoint(id, point);
}

absl::StatusOr<std::optional<DigestHex>> SqlGroupRows::FindDigest(const ChainId& id, int64_t first_index) {
  if (const Ahead* ahead = Find(id); ahead != nullptr && ahead->first_index == first_index) return ahead->digest;
  return SqlRows::FindDigest(id, first_index);
}

absl::Status SqlGroupRows::InsertSegment(const SegmentRecord& record) {
  chains_.erase(record.chain);
  return SqlRows::InsertSegment(record);
}

}  // namespace chainfleet
