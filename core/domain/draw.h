// Draws, segments and resume points as records: the committed facts, without the tensors.
//
// A draw holds all kinds of its step under one index and one weight. A segment is 1..n consecutive draws of one chain
// in one object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/domain/fields.h"

namespace chainfleet {

enum class DrawKind { kTheta = 0, kThetaA = 1 };
inline std::initializer_list<const char*> EnumNames(DrawKind) {
  static constexpr std::initializer_list<const char*> kNames = {"theta", "theta_a"};
  return kNames;
}
// Returns "theta" or "theta_a".
inline std::string ToString(DrawKind kind) { return EnumName(kind); }
absl::StatusOr<DrawKind> DrawKindFromString(const std::string& text);

// One draw on the host, float32. theta[k] holds the values of kind k of the job or segment: the D parameters in layout
// order, then the statistics of batch norm, if the network has any.
struct Draw {
  int64_t step = 0;
  double weight = 1;
  std::vector<std::vector<float>> theta;
};

// SHA-256 in 64 lower-case hex digits.
using DigestHex = std::string;

// An immutable object of the blob store.
struct BlobRef {
  std::string name;
  int64_t size_bytes = 0;
  DigestHex sha256;  // digest of the object's bytes
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name, Required());
    visit("size_bytes", self.size_bytes, Required());
    visit("sha256", self.sha256, Required());
  }
  bool operator==(const BlobRef&) const = default;
};

// `digest` = SHA-256(parent digest, job, chain, first index, steps, kinds, weights, tensor bytes), computed in
// core/store/draw_codec.
struct Segment {
  int64_t first_index = 0;      // index of the first draw, from 0, without gaps
  std::vector<int64_t> steps;   // one per draw, rising
  std::vector<double> weights;  // one per draw, > 0
  std::vector<DrawKind> kinds;
  BlobRef object;
  DigestHex digest;
  DigestHex parent_digest;  // digest of the chain's previous segment; 64 zeros for the first
  int64_t num_draws() const { return static_cast<int64_t>(steps.size()); }
  static void Fields(auto& self, auto&& visit) {
    visit("first_index", self.first_index, Required());
    visit("steps", self.steps, Required());
    visit("weights", self.weights, Required());
    visit("kinds", self.kinds);
    visit("object", self.object, Required());
    visit("digest", self.digest, Required());
    visit("parent_digest", self.parent_digest, Required());
  }
  bool operator==(const Segment&) const = default;
};

// The worker that made a commit, with its device and build.
struct Author {
  std::string worker, host, device_kind;  // device_kind: "cpu" or "cuda"
  int32_t numerics_version = 0;
  // The worker's signature and its certificate, in base64; empty: it had not joined. With `resume_sha256`, the worker
  // signed the resume point of the same commit, at `resume_step`, whose text names the segment's digest; else the
  // segment. Visited by records only.
  std::string signature, certificate;
  int64_t resume_step = 0;
  DigestHex resume_sha256;
  static void Fields(auto& self, auto&& visit) {
    visit("worker", self.worker);
    visit("host", self.host);
    visit("device_kind", self.device_kind);
    visit("numerics_version", self.numerics_version);
  }
};

// Returns the text that is signed when the segment is committed by a worker of release 0.1, or to such a server. The
// object's name has its store, chain, lease and digest, and the digest those of all segments before.
inline std::string SignedText(const Segment& segment) { return "chainfleet segment\n" + segment.object.name; }

// A committed segment and its origin; only the segment is part of the digest.
struct SegmentRecord {
  ChainId chain;
  Segment segment;
  int64_t lease_epoch = 0;
  Author author;
  absl::Time committed_at;
  bool corrupt = false;  // a read returned different bytes; predictions exclude the segment
  bool deleted = false;  // tombstone: digest, steps and weights stay, the object is gone
  static void Fields(auto& self, auto&& visit) {
    visit("chain", self.chain);
    visit("segment", self.segment);
    CommitFields(self, visit);
    visit("corrupt", self.corrupt);
    visit("deleted", self.deleted);
  }
  // The stored record. Chain, corrupt and deleted are columns of their own.
  static void StoredFields(auto& self, auto&& visit) {
    Segment::Fields(self.segment, visit);
    CommitFields(self, visit);
  }
  static void CommitFields(auto& self, auto&& visit) {
    visit("lease_epoch", self.lease_epoch);
    Author::Fields(self.author, visit);
    visit("signature", self.author.signature, IfAny());
    visit("certificate", self.author.certificate, IfAny());
    visit("resume_step", self.author.resume_step, IfAny());
    visit("resume_sha256", self.author.resume_sha256, IfAny());
    visit("committed_at", self.committed_at);
  }
};

// The signature of a resume point: its worker, and the draws that it follows.
struct ResumeProof {
  std::string name;         // name as an object, also if it is inline: store, chain, lease epoch and digest
  DigestHex last_digest;    // newest segment of the chain then; empty: the server did not know it when it signed
  bool with_draws = false;  // that segment is of the same commit, so the signature covers it
  std::string signature;    // signature of SignedText, base64
  std::string certificate;  // the worker's, base64; empty: the server signed for a worker that did not
  absl::Time committed_at;
  static void Fields(auto& self, auto&& visit) {
    visit("name", self.name, Required());
    visit("last_digest", self.last_digest, Required());
    visit("with_draws", self.with_draws, IfAny());
    visit("signature", self.signature, Required());
    visit("certificate", self.certificate, IfAny());
    visit("committed_at", self.committed_at);
  }
  bool operator==(const ResumeProof&) const = default;
};

// The full state of a chain at `step`: inline when small (limits::kInlineResumePointBytes), else an object.
// worker/numerics/batch/checkpoint_codec.h defines the bytes.
struct ResumePoint {
  int64_t step = 0;
  std::string inline_bytes;
  std::optional<BlobRef> object;
  DigestHex sha256;                       // digest of the bytes, inline or object
  std::optional<ResumeProof> proof = {};  // none: committed before release 0.2
  static void Fields(auto& self, auto&& visit) {
    visit("step", self.step);
    visit("inline_bytes", self.inline_bytes);
    visit("object", self.object);
    visit("sha256", self.sha256);
    visit("proof", self.proof);
  }
  bool operator==(const ResumePoint&) const = default;
};

// Returns the text that a worker signs when it commits a resume point that has a proof, but for its signature.
std::string SignedText(const ResumePoint& point);

// Checks that `point` is the resume point of a chain at the committed step `step` and has the digest `sha256`. Commits
// write chain and resume point in one transaction, so a difference means that one of them was replaced alone. DATA_LOSS.
absl::Status CheckResumePoint(int64_t step, const std::optional<ResumePoint>& point, const DigestHex& sha256);

// Returns the parent digest of a chain's first segment.
inline DigestHex FirstParentDigest() { return DigestHex(64, '0'); }

// Checks a segment before its commit: at most limits::kMaxSegmentDraws draws, sizes agree, indices and steps rise,
// weights > 0, digests are hex.
absl::Status CheckSegment(const Segment& segment);

}  // namespace chainfleet
