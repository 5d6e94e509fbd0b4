// Checks a run after any crash, hang or loss: the committed draws of each chain are one path of one Markov chain, and
// each draw is readable with its checksum.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/store/blob_store/blob_store.h"
#include "core/store/state_store/state_store.h"
#include "tests/sim/calm_run.h"
#include "tests/sim/history.h"

namespace chainfleet {

// Reads only through the interfaces, so it checks simulated stores and real stores after real faults. A caller that
// cannot see the order of transactions leaves grants and acceptances out of the history.
class HistoryChecker {
 public:
  // Returns the calm path of a chain; null if the path is unknown. Pointers stay valid.
  using CalmPath = std::function<const DrawPath*(const ChainId& chain)>;

  // Owns nothing. REQUIRES: no other code writes meanwhile.
  HistoryChecker(StateStore* state, const BlobStore* blobs, CalmPath calm);

  // Broken promises, one line each; empty if all were kept.
  //
  // The order of events: epochs rise, an epoch has one holder, only the newest epoch's commits are accepted.
  // The records: indices without gaps, each segment's parent is the one before, steps and epochs rise, the chain's
  // row agrees; each object has the size and bytes of its record, and its digest follows from its content. Both:
  // acknowledged commits exist. The draws: those of the calm run, to the byte, all of them if the chain came to
  // its end; tombstones are checked by their records only.
  std::vector<std::string> Check(const History& history);

  // Returns the objects that no chain references. There are none after the collector has run over a quiet store.
  std::vector<std::string> FindGarbage();

 private:
  struct Path;

  bool Complain(const ChainId& chain, const std::string& what);  // returns false
  void CheckEvents(const ChainId& chain, const std::vector<History::Event>& events);
  void CheckAcknowledged(const ChainId& chain, const std::vector<History::Event>& events, const Path& path);
  void CheckRow(const ChainRow& row, const Path& path);
  void CheckDraws(const ChainId& chain, bool ended, const Path& path);
  void CheckPlacedDraws(const ChainId& chain, bool ended, const DrawPath& calm, const Path& path);
  Path ReadPath(const ChainId& chain);
  void ReadRecord(const SegmentRecord& record, Path* path);
  bool ReadObject(const SegmentRecord& record, Path* path);

  StateStore* const state_;
  const BlobStore* const blobs_;
  const CalmPath calm_;
  std::vector<std::string> complaints_;
};

}  // namespace chainfleet
