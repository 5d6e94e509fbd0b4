#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/verbs/replay.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "client/lib/draw_reader.h"
#include "core/store/commit_proof/commit_proof.h"
#include "core/store/draw_codec/object_names.h"
#include "core/wire/field_wire.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

struct VerifyOptions {
  std::string job;
  std::vector<std::string> authorities;
  std::optional<int32_t> chain;
  std::optional<DrawRange> draws;  // to replay; all if empty
  bool allow_unsigned = false, replay = false;
};

absl::Status Forged(const v1::SegmentRecord& record, const std::string& what) {
  return absl::DataLossError(absl::StrCat("chain ", ToString(FromProto(record.chain())), ", draws from ",
                                          record.segment().first_index(), " by worker ", record.worker(), ": ", what));
}

// The signatures that count.
struct Trust {
  std::string tenant;  // the job's
  std::vector<CertificateHandle> authorities;
};

// Checks that the worker which the record names has signed the segment, with a certificate of an authority that was
// valid then and for the job's tenant. Returns the certificate.
absl::StatusOr<WorkerCertificate> CheckSignature(const v1::SegmentRecord& record, const Trust& trust) {
  const v1::Segment& segment = record.segment();
  const auto name = ParseChainObjectName(segment.object().name());
  if (!name || name->kind != ChainObjectName::Kind::kSegment ||
      ToString(name->chain) != ToString(FromProto(record.chain())) || name->digest != segment.digest() ||
      name->lease_epoch != record.lease_epoch()) {
    return Forged(record, "its object has the name of another segment");
  }
  std::string signature;
  if (!absl::Base64Unescape(record.signature(), &signature)) return Forged(record, "the signature is not base64");
  absl::StatusOr<WorkerCertificate> certificate =
      ReadCommitter(record.certificate(), FromProto(record.committed_at()), trust.tenant, trust.authorities);
  if (!certificate.ok()) return Forged(record, std::string(certificate.status().message()));
  if (certificate->claims().worker != record.worker()) {
    return Forged(record, absl::StrCat("it is signed by worker ", certificate->claims().worker));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const auto parsed, Parsed<SegmentRecord>(record));
  if (certificate->HasSigned(SignedText(parsed), signature)) return certificate;
  return Forged(record, "the signature is not that of its worker");
}

absl::StatusOr<std::vector<CertificateHandle>> FindAuthorities(Client* client, const std::vector<std::string>& files) {
  std::vector<CertificateHandle> found;
  for (const std::string& file : files) {
    CHAINFLEET_ASSIGN_OR_RETURN(found.emplace_back(), ReadCertificate(file));
  }
  if (!found.empty()) return found;
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::ServerInfo info, client->GetServerInfo());
  CHAINFLEET_ASSIGN_OR_RETURN(found.emplace_back(),
                              ParseCertificate(info.worker_authority(), "the server's authority of workers"));
  return found;
}

std::string ResumeText(const v1::Verification::Chain& chain) {
  if (chain.resume_step() == 0) return "";
  const std::string step = absl::StrCat("step ", chain.resume_step());
  if (chain.resume_by_server()) return step + ", signed by the server";
  return chain.resume_worker().empty() ? step + ", not signed" : step + " by " + chain.resume_worker();
}

std::string FactsText(const v1::Verification& found) {
  Table table({">CHAIN", ">DRAWS", ">SEGMENTS", ">DELETED", ">NOT SIGNED", "WORKERS", "=LAST DIGEST", "RESUME POINT"});
  int64_t unknown = 0;
  for (const v1::Verification::Chain& chain : found.chains()) {
    unknown += chain.deleted_segments() + chain.unsigned_segments();
    table.AddRow({absl::StrCat(chain.chain()), absl::StrCat(chain.draws()), absl::StrCat(chain.segments()),
                  absl::StrCat(chain.deleted_segments()), absl::StrCat(chain.unsigned_segments()),
                  absl::StrJoin(chain.workers(), " "), chain.last_digest().substr(0, 12), ResumeText(chain)});
  }
  return absl::StrCat(table.Render(),
                      "every segment has the digest that its worker signed, and follows the one before it",
                      unknown == 0 ? "\n" : ", but for those that were deleted or not signed\n");
}

std::string ReplayText(const v1::Verification& found) {
  int64_t draws = 0, deleted = 0;  // retention spares the draws of versions with aliases, and may delete later ones
  for (const v1::Verification::Replay& chain : found.replays()) {
    draws += chain.draws();
    deleted += chain.last_draw() + 1 - chain.first_draw() - chain.draws();
  }
  const v1::Verification::Replay& first = found.replays(0);
  const std::string which =
      found.replays_size() > 1
          ? absl::StrCat(draws, " draws of ", found.replays_size(), " chains")
          : absl::StrCat("draws ", first.first_draw(), " to ", first.last_draw(), " of chain ", first.chain());
  return absl::StrCat("sampled again, ", which, deleted > 0 ? absl::StrCat(" without ", deleted, " deleted ones") : "",
                      " have the same bits\n");
}

absl::Status CheckHasChain(const v1::Job& job, int32_t chain) {
  if (chain < job.num_chains()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("job ", job.id(), " has no chain ", chain, ", only 0 to ", job.num_chains() - 1));
}

// Checks that there are the values of all draws of the range. `records` are those of `chain`: "chain moons-1a2b3c/0".
absl::Status CheckHasDraws(const std::string& chain, const DrawRange& range,
                           const std::vector<v1::SegmentRecord>& records) {
  int64_t end = 0;
  for (const v1::SegmentRecord& record : records) {
    const int64_t first = record.segment().first_index();
    end = first + record.segment().steps_size();
    if (!record.deleted() || end <= range.first || first > range.last) continue;
    return absl::FailedPreconditionError(absl::StrCat("the job's retention deleted draws ", first, " to ", end - 1,
                                                      " of ", chain, ": ask for later draws"));
  }
  if (range.last < end) return absl::OkStatus();
  return absl::NotFoundError(end == 0 ? absl::StrCat(chain, " has no draws")
                                      : absl::StrCat(chain, " has no draw ", range.last, ", only 0 to ", end - 1,
                                                     ": `chainfleet get draws` lists them"));
}

// A chain of the records, as far as it is checked.
struct CheckedChain {
  v1::Verification::Chain* found = nullptr;
  bool signs_resume_points = false;        // the worker that committed the newest draws
  std::set<std::string> workers, digests;  // digests: of its segments
};
using CheckedChains = std::map<int32_t, CheckedChain>;  // by index

// Checks the signature of each segment, and says what is signed.
absl::StatusOr<CheckedChains> CheckRecords(const std::vector<v1::SegmentRecord>& records, const Trust& trust,
                                           bool allow_unsigned, v1::Verification* found) {
  CheckedChains chains;
  for (const v1::SegmentRecord& record : records) {
    const int32_t index = record.chain().index();
    CheckedChain& checked = chains[index];
    if (checked.found == nullptr) {
      checked.found = found->add_chains();
      checked.found->set_chain(index);
    }
    v1::Verification::Chain& chain = *checked.found;
    chain.set_segments(chain.segments() + 1);
    chain.set_draws(chain.draws() + record.segment().steps_size());
    chain.set_deleted_segments(chain.deleted_segments() + (record.deleted() ? 1 : 0));
    chain.set_last_digest(record.segment().digest());
    checked.digests.insert(record.segment().digest());
    if (checked.workers.insert(record.worker()).second) chain.add_workers(record.worker());
    checked.signs_resume_points = false;
    if (!record.signature().empty()) {
      CHAINFLEET_ASSIGN_OR_RETURN(const WorkerCertificate committer, CheckSignature(record, trust));
      checked.signs_resume_points = committer.claims().signs_resume_points;
    } else if (allow_unsigned) {
      chain.set_unsigned_segments(chain.unsigned_segments() + 1);
    } else {
      return Forged(record, "it is not signed; --allow-unsigned accepts what workers of older releases committed");
    }
  }
  return chains;
}

// Checks who committed the newest resume point of each chain, and that it follows the draws that were the newest when
// the server read both. A running chain may have newer draws by now.
absl::Status CheckResumePoints(const std::string& job,
                               const std::vector<v1::ListSegmentsResponse::ChainResume>& resumes, const Trust& trust,
                               const CheckedChains& chains) {
  for (const v1::ListSegmentsResponse::ChainResume& resume : resumes) {
    const ChainId id{job, resume.chain()};
    CHAINFLEET_ASSIGN_OR_RETURN(const auto point, Parsed<ResumePoint>(resume.resume_point()));
    const auto forged = [&](const std::string& what) {
      return absl::DataLossError(
          absl::StrCat("chain ", ToString(id), ", resume point at step ", point.step, ": ", what));
    };
    const auto known = chains.find(id.index);
    if (known == chains.end()) return forged("the chain has no draws");
    const CheckedChain& checked = known->second;
    checked.found->set_resume_step(point.step);
    if (!point.proof) {
      if (!checked.signs_resume_points) continue;
      return forged("it is not signed, but the worker that committed the newest draws signs resume points");
    }
    if (!checked.digests.contains(resume.last_digest())) return forged("it follows unlisted draws");
    const auto signer = CheckResumeProof(id, point, resume.last_digest(), trust.tenant, trust.authorities);
    if (!signer.ok()) return forged(std::string(signer.status().message()));
    checked.found->set_resume_worker(*signer);
    checked.found->set_resume_by_server(signer->empty());
  }
  return absl::OkStatus();
}

void AddReplays(const DrawDigests& digests, v1::Verification* found) {
  for (const auto& [draw, digest] : digests) {
    const auto& [chain, index] = draw;
    if (found->replays().empty() || found->replays().rbegin()->chain() != chain) {
      found->add_replays()->set_chain(chain);
      found->mutable_replays()->rbegin()->set_first_draw(index);
    }
    v1::Verification::Replay& last = *found->mutable_replays()->rbegin();
    last.set_last_draw(index);
    last.set_draws(last.draws() + 1);
  }
}

absl::Status Verify(Invocation* run, const VerifyOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  Trust trust;
  CHAINFLEET_ASSIGN_OR_RETURN(trust.authorities, FindAuthorities(&client, options.authorities));
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(options.job));
  trust.tenant = job.tenant();
  v1::ListSegmentsRequest request;
  request.set_job(job.id());
  request.set_resume_points(true);
  if (options.chain) {
    CHAINFLEET_RETURN_IF_ERROR(CheckHasChain(job, *options.chain));
    request.set_chain(*options.chain);
  }
  std::vector<v1::ListSegmentsResponse::ChainResume> resumes;
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::SegmentRecord> records, client.ListSegments(request, &resumes));
  const std::string whose = options.chain ? absl::StrCat("chain ", job.id(), "/", *options.chain) : "job " + job.id();
  if (options.draws) CHAINFLEET_RETURN_IF_ERROR(CheckHasDraws(whose, *options.draws, records));
  v1::Verification found;
  found.set_job(job.id());
  CHAINFLEET_ASSIGN_OR_RETURN(const CheckedChains chains, CheckRecords(records, trust, options.allow_unsigned, &found));
  CHAINFLEET_RETURN_IF_ERROR(CheckResumePoints(job.id(), resumes, trust, chains));
  DrawDigests draws;
  CHAINFLEET_RETURN_IF_ERROR(ReadDraws(&client, records, [&](const CheckedSegment& segment) {
    if (options.replay) AddDigests(segment, options.draws.value_or(DrawRange()), &draws);
    return absl::OkStatus();
  }));
  const bool is_text = run->format == OutputFormat::kTable || run->format == OutputFormat::kWide;
  if (is_text) std::cout << FactsText(found) << std::flush;  // holds whatever the replay finds
  if (options.replay) {
    if (draws.empty()) return absl::FailedPreconditionError(whose + " has no draws to replay");
    CHAINFLEET_RETURN_IF_ERROR(Replay(*run, &client, job, draws));
    AddReplays(draws, &found);
  }
  PrintOne(std::cout, run->format, found, found.job(), [&] { return options.replay ? ReplayText(found) : ""; });
  return absl::OkStatus();
}

// FIRST, or FIRST:LAST; nullopt for any other text.
std::optional<DrawRange> ParseDraws(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, ':');
  DrawRange range;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &range.first)) return std::nullopt;
  if (!absl::SimpleAtoi(ends.back(), &range.last)) return std::nullopt;
  return range.first >= 0 && range.first <= range.last ? std::optional(range) : std::nullopt;
}

void AddReplayOptions(CLI::App* verify, VerifyOptions* options) {
  CLI::Option* chain = verify->add_option("--chain", options->chain, "Only this chain")->check(CountAtLeast(0));
  CLI::Option* replay = verify->add_flag(
      "--replay", options->replay,
      "Also sample the draws a second time, in a copy of the job, and compare them. The copy is deleted afterwards "
      "unless a draw differs");
  verify
      ->add_option_function<std::string>(
          "--draws",
          [options](const std::string& text) {
            options->draws = ParseDraws(text);
            if (options->draws) return;
            throw CLI::ValidationError("--draws", "\"" + text + "\" is not a draw or a range: write 7 or 0:99");
          },
          "With --chain and --replay: sample up to the draw LAST, and compare the draws from FIRST on")
      ->needs(chain)
      ->needs(replay)
      ->option_text("FIRST[:LAST]");
}

}  // namespace

void AddVerify(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* verify = AddVerb(
      program, run, "verify",
      "Read a job's draws and check that they and its resume points are as the workers signed them, from draw 0 on",
      "  chainfleet verify moons\n"
      "  chainfleet verify moons --authority authority.crt    # kept from DATA/authority/ca.crt\n"
      "  chainfleet verify moons --replay                     # costs what the job cost\n"
      "  chainfleet verify moons --replay --chain 0 --draws 0:99",
      [=] { return Verify(run, *options); });
  AddJobArgument(verify, &options->job);
  verify
      ->add_option("--authority", options->authorities,
                   "Certificate of an authority of workers (PEM), repeatable; default: the one that the server names")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("FILE");
  verify->add_flag("--allow-unsigned", options->allow_unsigned, "Accept segments without a signature, and count them");
  AddReplayOptions(verify, options.get());
  AddServerOptions(verify, run);
  AddOutputOption(verify, run);
}

}  // namespace chainfleet
