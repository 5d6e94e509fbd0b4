#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/verbs/replay.h"
#include "client/cli/verbs/verbs.h"
#include "client/cli/views/table.h"
#include "client/lib/draw_reader.h"
#include "core/store/draw_codec/object_names.h"
#include "core/tls/worker_certificate.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

struct VerifyOptions {
  std::string job;
  std::vector<std::string> authorities;
  std::optional<int32_t> chain;
  bool allow_unsigned = false, replay = false;
};

struct ChainFacts {
  int64_t segments = 0, draws = 0, deleted = 0, not_signed = 0;
  std::set<std::string> workers;
  std::string digest;
};

absl::Status Forged(const v1::SegmentRecord& record, const std::string& what) {
  return absl::DataLossError(absl::StrCat("chain ", ToString(FromProto(record.chain())), ", draws from ",
                                          record.segment().first_index(), " by worker ", record.worker(), ": ", what));
}

absl::StatusOr<WorkerCertificate> ReadFromAny(const std::string& der,
                                              const std::vector<CertificateHandle>& authorities) {
  absl::StatusOr<WorkerCertificate> read = absl::UnauthenticatedError("there is no authority");
  for (const CertificateHandle& authority : authorities) {
    if (read = WorkerCertificate::Read(der, *authority); read.ok()) break;
  }
  return read;
}

// Checks that the worker which the record names has signed the segment, with a certificate of an authority that was
// valid then.
absl::Status CheckSignature(const v1::SegmentRecord& record, const std::vector<CertificateHandle>& authorities) {
  const v1::Segment& segment = record.segment();
  const auto name = ParseChainObjectName(segment.object().name());
  if (!name || ToString(name->chain) != ToString(FromProto(record.chain())) || name->digest != segment.digest() ||
      name->lease_epoch != record.lease_epoch()) {
    return Forged(record, "its object has the name of another segment");
  }
  std::string signature, der;
  if (!absl::Base64Unescape(record.signature(), &signature) || !absl::Base64Unescape(record.certificate(), &der)) {
    return Forged(record, "signature or certificate is not base64");
  }
  const absl::StatusOr<WorkerCertificate> certificate = ReadFromAny(der, authorities);
  if (!certificate.ok()) return Forged(record, std::string(certificate.status().message()));
  if (certificate->claims().worker != record.worker()) {
    return Forged(record, absl::StrCat("it is signed by worker ", certificate->claims().worker));
  }
  const absl::Time at = FromProto(record.committed_at());
  if (at < certificate->validity().from || at > certificate->validity().until) {
    return Forged(record, "it was committed when the certificate was not valid");
  }
  Segment signed_segment;
  signed_segment.object.name = segment.object().name();
  return certificate->HasSigned(SignedText(signed_segment), signature)
             ? absl::OkStatus()
             : Forged(record, "the signature is not that of its worker");
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

Table FactsTable(const std::map<int32_t, ChainFacts>& chains) {
  Table table({">CHAIN", ">DRAWS", ">SEGMENTS", ">DELETED", ">NOT SIGNED", "WORKERS", "=LAST DIGEST"});
  for (const auto& [index, facts] : chains) {
    table.AddRow({absl::StrCat(index), absl::StrCat(facts.draws), absl::StrCat(facts.segments),
                  absl::StrCat(facts.deleted), absl::StrCat(facts.not_signed), absl::StrJoin(facts.workers, " "),
                  facts.digest.substr(0, 12)});
  }
  return table;
}

absl::Status Verify(Invocation* run, const VerifyOptions& options) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const auto authorities, FindAuthorities(&client, options.authorities));
  v1::ListSegmentsRequest request;
  request.set_job(options.job);
  if (options.chain) request.set_chain(*options.chain);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<v1::SegmentRecord> records, client.ListSegments(request));
  std::map<int32_t, ChainFacts> chains;
  for (const v1::SegmentRecord& record : records) {
    ChainFacts& facts = chains[record.chain().index()];
    ++facts.segments;
    facts.draws += record.segment().steps_size();
    facts.deleted += record.deleted() ? 1 : 0;
    facts.digest = record.segment().digest();
    facts.workers.insert(record.worker());
    if (record.signature().empty() && options.allow_unsigned) {
      ++facts.not_signed;
    } else if (record.signature().empty()) {
      return Forged(record, "it is not signed; --allow-unsigned accepts what workers of older releases committed");
    } else {
      CHAINFLEET_RETURN_IF_ERROR(CheckSignature(record, authorities));
    }
  }
  DrawDigests draws;
  CHAINFLEET_RETURN_IF_ERROR(ReadDraws(&client, records, [&](const CheckedSegment& segment) {
    if (options.replay) AddDigests(segment, &draws);
    return absl::OkStatus();
  }));
  std::cout << FactsTable(chains).Render()
            << "every segment has the digest that its worker signed, and follows the one before it\n";
  if (!options.replay) return absl::OkStatus();
  CHAINFLEET_RETURN_IF_ERROR(Replay(&client, request, draws, run->timeout));
  std::cout << "sampled again, " << draws.size() << " draws have the same bits\n";
  return absl::OkStatus();
}

}  // namespace

void AddVerify(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* verify = AddVerb(
      program, run, "verify",
      "Read all draws of a job and check that they are as the workers committed and signed them, from draw 0 on",
      "  chainfleet verify moons\n"
      "  chainfleet verify moons --authority authority.crt    # kept from DATA/authority/ca.crt\n"
      "  chainfleet verify moons --chain 0 --replay           # costs what the job cost",
      [=] { return Verify(run, *options); });
  AddJobArgument(verify, &options->job);
  verify->add_option("--chain", options->chain, "Only this chain")->check(CountAtLeast(0));
  verify
      ->add_option("--authority", options->authorities,
                   "Certificate of an authority of workers (PEM), repeatable; default: the one that the server names")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("FILE");
  verify->add_flag("--allow-unsigned", options->allow_unsigned, "Accept segments without a signature, and count them");
  verify->add_flag("--replay", options->replay,
                   "Also sample the job a second time, as a job that is deleted afterwards, and compare every draw");
  AddServerOptions(verify, run);
}

}  // namespace chainfleet
