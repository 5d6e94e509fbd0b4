#include "tests/sim/history_checker.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {

// The records of one chain, in order.
struct HistoryChecker::Path {
  int64_t num_draws = 0, step = 0, lease_epoch = 0;
  DigestHex last_digest = FirstParentDigest();
  std::map<int64_t, DigestHex> digests;  // by first index
  DrawPath draws;
  bool whole = true;  // every object was readable
  // With tombstones: the position of each readable draw, by the weight of all earlier draws.
  struct Placed {
    double before = 0;
    Draw draw;
  };
  double weight = 0;
  bool has_tombstones = false;
  std::vector<Placed> placed;
};

HistoryChecker::HistoryChecker(StateStore* state, const BlobStore* blobs, CalmPath calm)
    : state_(state), blobs_(blobs), calm_(std::move(calm)) {}

bool HistoryChecker::Complain(const ChainId& chain, const std::string& what) {
  complaints_.push_back(absl::StrCat("chain ", ToString(chain), ": ", what));
  return false;
}

std::vector<std::string> HistoryChecker::Check(const History& history) {
  complaints_.clear();
  const absl::StatusOr<StoredState> stored = state_->Load();
  if (!stored.ok()) return {stored.status().ToString()};
  std::map<ChainId, ChainRow> rows;
  std::set<ChainId> chains;
  for (const StoredJob& job : stored->jobs) {
    for (const ChainRow& row : job.chains) chains.insert(rows.emplace(row.id, row).first->first);
  }
  for (const auto& [chain, events] : history.events()) chains.insert(chain);
  for (const ChainId& chain : chains) {
    const Path path = ReadPath(chain);
    const auto row = rows.find(chain);
    const bool purged = row == rows.end();
    if (purged && path.num_draws > 0) Complain(chain, "was purged and left records");
    if (const auto events = history.events().find(chain); events != history.events().end()) {
      CheckEvents(chain, events->second);
      if (!purged) CheckAcknowledged(chain, events->second, path);
    }
    if (purged) continue;
    CheckRow(row->second, path);
    // A chain that was no longer needed has a reason, and ended at its current step.
    const bool to_its_end = row->second.state == ChainState::kSucceeded && row->second.reason.empty();
    CheckDraws(chain, to_its_end || row->second.state == ChainState::kDiverged, path);
  }
  return complaints_;
}

void HistoryChecker::CheckEvents(const ChainId& chain, const std::vector<History::Event>& events) {
  int64_t epoch = 0, step = 0;
  std::string holder;
  for (const History::Event& event : events) {
    const std::string who = absl::StrCat("lease epoch ", event.lease_epoch, " of ", event.holder);
    if (event.kind == History::Event::Kind::kGranted) {
      const bool again = event.lease_epoch == epoch && event.holder == holder;
      if (!again && event.lease_epoch <= epoch) {
        Complain(chain, absl::StrCat(who, " was granted after ", epoch, " of ", holder));
      }
      epoch = event.lease_epoch;
      holder = event.holder;
    } else if (event.kind == History::Event::Kind::kAccepted) {
      if (event.lease_epoch != epoch || event.holder != holder) {
        Complain(chain,
                 absl::StrCat("step ", event.step, " was accepted from ", who, ", fenced by ", epoch, " of ", holder));
      }
      if (event.step < step) Complain(chain, absl::StrCat("step ", event.step, " was accepted after ", step));
      step = event.step;
    }
  }
}

void HistoryChecker::CheckAcknowledged(const ChainId& chain, const std::vector<History::Event>& events,
                                       const Path& path) {
  for (const History::Event& event : events) {
    if (event.kind != History::Event::Kind::kAcknowledged || event.digest.empty()) continue;
    const auto found = path.digests.find(event.first_index);
    if (found == path.digests.end() || found->second != event.digest) {
      Complain(chain, absl::StrCat("draw ", event.first_index, " was acknowledged under lease epoch ",
                                   event.lease_epoch, " and is lost"));
    }
  }
}

void HistoryChecker::CheckRow(const ChainRow& row, const Path& path) {
  if (row.num_draws != path.num_draws) {
    Complain(row.id, absl::StrCat("its row counts ", row.num_draws, " draws, its records ", path.num_draws));
  }
  if (row.last_digest != path.last_digest) Complain(row.id, "its row ends in another segment than its records");
  if (row.step < path.step) {
    Complain(row.id, absl::StrCat("resumes at step ", row.step, ", before its last draw at ", path.step));
  }
  if (row.lease_epoch < path.lease_epoch) Complain(row.id, "has records of an epoch that was never granted");
}

HistoryChecker::Path HistoryChecker::ReadPath(const ChainId& chain) {
  Path path;
  const StateStore::SegmentQuery query{.job = chain.job, .chain = chain.index, .after_chain = chain.index};
  const absl::Status read = VisitSegments(state_, query, [&](const SegmentRecord& record) {
    ReadRecord(record, &path);
    return true;
  });
  if (!read.ok()) Complain(chain, read.ToString());
  return path;
}

void HistoryChecker::ReadRecord(const SegmentRecord& record, Path* path) {
  const Segment& segment = record.segment;
  const std::string draw = absl::StrCat("draw ", segment.first_index);
  if (segment.first_index != path->num_draws) {
    Complain(record.chain, absl::StrCat(draw, " follows after ", path->num_draws, " draws"));
  }
  if (segment.parent_digest != path->last_digest) Complain(record.chain, draw + " has another parent than the last");
  if (segment.steps.front() <= path->step) {
    Complain(record.chain, absl::StrCat(draw, " is of step ", segment.steps.front(), ", after step ", path->step));
  }
  if (record.lease_epoch < path->lease_epoch) {
    Complain(record.chain,
             absl::StrCat(draw, " is of lease epoch ", record.lease_epoch, ", after epoch ", path->lease_epoch));
  }
  path->num_draws += segment.num_draws();
  path->step = segment.steps.back();
  path->lease_epoch = record.lease_epoch;
  path->last_digest = segment.digest;
  path->digests[segment.first_index] = segment.digest;
  if (record.deleted) {
    path->has_tombstones = true;
  } else if (!ReadObject(record, path)) {
    path->whole = false;
  }
  for (const double weight : segment.weights) path->weight += weight;
}

bool HistoryChecker::ReadObject(const SegmentRecord& record, Path* path) {
  const Segment& segment = record.segment;
  const std::string object = absl::StrCat("the object of draw ", segment.first_index, ", ", segment.object.name);
  const absl::StatusOr<std::string> bytes = blobs_->Get(segment.object.name);
  if (!bytes.ok()) return Complain(record.chain, absl::StrCat(object, ": ", bytes.status().ToString()));
  const bool intact =
      static_cast<int64_t>(bytes->size()) == segment.object.size_bytes && Sha256Hex(*bytes) == segment.object.sha256;
  if (!intact) return Complain(record.chain, object + " has other bytes than its record says");
  const absl::StatusOr<SegmentContent> content = DecodeSegment(*bytes);
  if (!content.ok()) return Complain(record.chain, absl::StrCat(object, ": ", content.status().ToString()));
  Segment said = content->segment;
  said.object = segment.object;
  said.digest = segment.digest;
  if (content->chain != record.chain || said != segment) {
    return Complain(record.chain, object + " holds other draws than its record says");
  }
  if (content->segment.digest != segment.digest) return Complain(record.chain, object + " has another digest");
  double before = path->weight;
  for (const Draw& draw : content->draws) {
    AppendDraw(draw, &path->draws);
    path->placed.push_back({before, draw});
    before += draw.weight;
  }
  return true;
}

void HistoryChecker::CheckDraws(const ChainId& chain, bool ended, const Path& path) {
  const DrawPath* const calm = calm_(chain);
  if (calm == nullptr || !path.whole) return;
  if (path.has_tombstones) return CheckPlacedDraws(chain, ended, *calm, path);
  const DrawPath& draws = path.draws;
  if (draws.size() > calm->size()) {
    Complain(chain, absl::StrCat("has ", draws.size(), " draws, a calm run ", calm->size()));
    return;
  }
  for (size_t i = 0; i < draws.size(); ++i) {
    // The count of a running chain's last state may still grow.
    const bool open = !ended && i + 1 == draws.size();
    const Draw &mine = draws[i], &theirs = (*calm)[i];
    const bool same_count = open ? mine.weight <= theirs.weight && mine.step <= theirs.step
                                 : mine.weight == theirs.weight && mine.step == theirs.step;
    if (!SameState(mine, theirs) || !same_count) {
      Complain(chain, absl::StrCat("state ", i, " at step ", mine.step, " is not the one of a calm run"));
      return;
    }
  }
  if (ended && draws.size() < calm->size()) {
    Complain(chain, absl::StrCat("ended with ", draws.size(), " draws, a calm run has ", calm->size()));
  }
}

// Between tombstones: each draw equals, to the byte, the state of a calm run at its position. Weights are whole counts.
void HistoryChecker::CheckPlacedDraws(const ChainId& chain, bool ended, const DrawPath& calm, const Path& path) {
  std::vector<double> ends;
  for (const Draw& draw : calm) ends.push_back((ends.empty() ? 0 : ends.back()) + draw.weight);
  for (const auto& [before, draw] : path.placed) {
    const auto place = static_cast<size_t>(std::ranges::upper_bound(ends, before) - ends.begin());
    const double end = before + draw.weight;
    const bool there = place < calm.size() && end <= ends[place] && SameState(draw, calm[place]) &&
                       (end == ends[place] ? draw.step == calm[place].step : draw.step < calm[place].step);
    if (there) continue;
    Complain(chain, absl::StrCat("the state at step ", draw.step, ", behind tombstones, is not that of a calm run"));
    return;
  }
  const double total = ends.empty() ? 0 : ends.back();
  if (path.weight > total || (ended && path.weight < total)) {
    Complain(chain, absl::StrCat("its records count ", path.weight, " kept steps, a calm run ", total));
  }
}

std::vector<std::string> HistoryChecker::FindGarbage() {
  const absl::StatusOr<std::vector<std::string>> names = blobs_->List("");
  if (!names.ok()) return {names.status().ToString()};
  // The collector's next round deletes objects that retention has just released.
  const absl::StatusOr<std::vector<std::string>> named = state_->ListGarbage("", std::numeric_limits<int32_t>::max());
  if (!named.ok()) return {named.status().ToString()};
  const std::set<std::string> going(named->begin(), named->end());
  std::map<ChainId, std::set<std::string>> references;
  std::vector<std::string> garbage;
  for (const std::string& name : *names) {
    const auto parsed = ParseChainObjectName(name);
    if (!parsed || (parsed->kind == ChainObjectName::Kind::kSegment && going.contains(name))) continue;
    if (!references.contains(parsed->chain)) {
      const auto read = state_->ReferencesOfChain(parsed->chain);
      if (!read.ok()) return {read.status().ToString()};
      references[parsed->chain] = read->objects;
    }
    if (!references[parsed->chain].contains(name)) garbage.push_back(name);
  }
  return garbage;
}

}  // namespace chainfleet
