// libFuzzer target: the messages that a worker sends, from the bytes to the values that the coordinator stores.
//
// The first byte selects the message. A value that is accepted can be written and read again without a change, and
// what reaches terminals, logs and Prometheus has no characters that these would obey. A certificate names the worker
// that asked for it. A name of an object leads into no other folder.
#include <sodium.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/domain/worker_protocol.h"
#include "core/store/draw_codec/object_names.h"
#include "core/tls/signing.h"
#include "core/tls/worker_certificate.h"
#include "core/wire/predict_wire.h"
#include "core/wire/worker_wire.h"
#include "server/rpc/worker_admission.h"
#include "server/rpc/worker_claims.h"
#include "tests/support/fake_clock.h"

namespace {

namespace v1 = chainfleet::v1;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void CheckPlain(const std::string& text) {
  for (const char c : text) Require(c > ' ' && c < 0x7f && c != '<' && c != '"', "a claim has plain characters");
}

void CheckClaimed(const v1::SynchronizeRequest& request) {
  for (const auto* text : {&request.worker(), &request.incarnation(), &request.host(), &request.metrics_address()}) {
    CheckPlain(*text);
  }
  for (const auto& device : request.devices()) CheckPlain(device.name());
}
void CheckClaimed(const v1::CommitProgressRequest& request) { CheckPlain(request.worker()); }

// Reads a message as its handler does. A value that is read once is the same when it is written and read again.
template <typename Message>
void Read(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) return;
  if constexpr (requires { chainfleet::CheckClaims(message); }) {
    if (const absl::Status claims = chainfleet::CheckClaims(message); !claims.ok()) {
      Require(absl::IsInvalidArgument(claims), "a refusal is INVALID_ARGUMENT");
      return;
    }
    CheckClaimed(message);
  }
  const auto value = chainfleet::FromProto(message);
  if (!value.ok()) {
    Require(absl::IsInvalidArgument(value.status()), "a refusal is INVALID_ARGUMENT");
    return;
  }
  const Message written = chainfleet::ToProto(*value);
  const auto again = chainfleet::FromProto(written);
  Require(again.ok(), "a value that is read can be read again");
  Require(chainfleet::ToProto(*again).SerializeAsString() == written.SerializeAsString(),
          "reading twice changes nothing");
}

void ReadUpdate(const std::string& bytes) {
  v1::ShardUpdate update;
  if (!update.ParseFromString(bytes)) return;
  if (update.has_hello() && chainfleet::CheckClaims(update.hello()).ok()) CheckPlain(update.hello().worker());
  if (update.has_result()) Read<v1::ShardResult>(update.result().SerializeAsString());
}

// An authority whose key is public, so that seeds can hold certificates that it has signed.
chainfleet::Signer MakeAuthority() {
  const std::string der = std::string("\x30\x31\x02\x01\x01\x04\x20", 7) + std::string(32, '\1') +
                          "\xa0\x0a\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";  // P-256
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  chainfleet::KeyHandle key(d2i_PrivateKey(EVP_PKEY_EC, nullptr, &begin, static_cast<long>(der.size())));
  const absl::Time now = chainfleet::FakeClock().Wall();
  auto certificate = chainfleet::Blank("authority", key.get(), {now, now + absl::Hours(1)});
  const bool made = chainfleet::AddExtension(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash");
  Require(made, "an authority can be made");
  return {std::move(certificate), std::move(key)};
}

chainfleet::Signer Authority() {
  static const chainfleet::Signer made = MakeAuthority();
  X509_up_ref(made.certificate.get());
  EVP_PKEY_up_ref(made.key.get());
  return {chainfleet::CertificateHandle(made.certificate.get()), chainfleet::KeyHandle(made.key.get())};
}

// Signs the request by a key of its own, as a stranger can.
void SignJoin(v1::JoinRequest* request) {
  const std::array<unsigned char, crypto_sign_SEEDBYTES> seed{2};
  std::array<unsigned char, crypto_sign_SECRETKEYBYTES> secret{};
  std::array<unsigned char, crypto_sign_PUBLICKEYBYTES> key{};
  std::array<unsigned char, crypto_sign_BYTES> signature{};
  crypto_sign_seed_keypair(key.data(), secret.data(), seed.data());
  request->set_public_key(key.data(), key.size());
  request->set_incarnation(chainfleet::IncarnationOf(request->public_key()));
  const std::string text = chainfleet::JoinText(request->worker(), request->incarnation());
  crypto_sign_detached(signature.data(), nullptr, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                       secret.data());
  request->set_signature(signature.data(), signature.size());
}

void CheckAdmit(const v1::JoinRequest& request) {
  const chainfleet::FakeClock clock;
  const chainfleet::WorkerAdmission admission(Authority(), &clock);
  const auto reply = admission.Admit(request, "tenant", "token");
  if (!reply.ok()) {
    Require(absl::IsInvalidArgument(reply.status()) || absl::IsPermissionDenied(reply.status()),
            "a refusal is INVALID_ARGUMENT or PERMISSION_DENIED");
    return;
  }
  CheckPlain(request.worker());
  const auto read = chainfleet::WorkerCertificate::Read(reply->certificate(), *Authority().certificate);
  Require(read.ok(), "a certificate that is issued can be read");
  Require(read->claims() == chainfleet::WorkerClaims{request.worker(), request.incarnation(), "tenant", "token",
                                                     request.signs_resume_points()},
          "a certificate names the worker that asked for it");
}

// Reads the request as it came, then signed: a changed input has lost its signature.
void ReadJoin(const std::string& bytes) {
  v1::JoinRequest request;
  if (!request.ParseFromString(bytes)) return;
  CheckAdmit(request);
  SignJoin(&request);
  CheckAdmit(request);
}

void CheckCertificate(const std::string& der) {
  const auto read = chainfleet::WorkerCertificate::Read(der, *Authority().certificate);
  Require(read.ok() || absl::IsUnauthenticated(read.status()), "a refusal is UNAUTHENTICATED");
}

// Signs the certificate, so that the parts behind the check of the signature are read, too.
void CheckSigned(const std::string& der) {
  const auto* begin = reinterpret_cast<const unsigned char*>(der.data());
  const chainfleet::CertificateHandle certificate(d2i_X509(nullptr, &begin, static_cast<long>(der.size())));
  if (certificate == nullptr || !chainfleet::Sign(certificate.get(), Authority())) return;
  unsigned char* encoded = nullptr;
  const int size = i2d_X509(certificate.get(), &encoded);
  if (size <= 0) return;
  CheckCertificate({reinterpret_cast<const char*>(encoded), static_cast<size_t>(size)});
  OPENSSL_free(encoded);
}

void ReadProof(const std::string& bytes) {
  const chainfleet::FakeClock clock;
  const chainfleet::WorkerAdmission admission(Authority(), &clock);
  const auto certificate = admission.Verify(bytes);
  Require((admission.Verify(bytes) == nullptr) == (certificate == nullptr), "a repeated proof has the same answer");
  v1::WorkerProof proof;
  const bool parsed = proof.ParseFromString(bytes);
  if (certificate != nullptr) {
    const absl::Duration left = absl::FromUnixSeconds(proof.expires()) - clock.Wall();
    Require(parsed && left > absl::ZeroDuration() && left <= chainfleet::kLongestProof,
            "a proof that is accepted has not expired");
  }
  CheckCertificate(proof.certificate());
  CheckSigned(proof.certificate());
}

// The name is the path of a file where objects are in a folder.
void CheckName(const std::string& name) {
  const auto chain = chainfleet::ParseChainObjectName(name);
  Require(chainfleet::IsObjectName(name) || !chain, "an object of a chain is an object");
  if (!chainfleet::IsObjectName(name)) return;
  CheckPlain(name);
  Require(name.front() != '/' && name.find("..") == std::string::npos, "an object is below the store's folder");
  if (!chain) return;
  const bool segment = chain->kind == chainfleet::ChainObjectName::Kind::kSegment;
  const auto write = segment ? chainfleet::SegmentObjectName : chainfleet::ResumeObjectName;
  Require(write(chain->store_incarnation, chain->chain, chain->lease_epoch, chain->digest) == name,
          "a name that is read is written alike");
}

void ReadPut(const std::string& bytes) {
  v1::PutBlobRequest request;
  if (request.ParseFromString(bytes) && request.has_header()) CheckName(request.header().blob().name());
}

template <typename Request>
void ReadName(const std::string& bytes) {
  Request request;
  if (request.ParseFromString(bytes)) CheckName(request.blob().name());
}

constexpr std::array kReaders = {Read<v1::SynchronizeRequest>,
                                 Read<v1::CommitProgressRequest>,
                                 Read<v1::ShardResult>,
                                 ReadUpdate,
                                 ReadJoin,
                                 ReadProof,
                                 ReadPut,
                                 ReadName<v1::SignUploadRequest>,
                                 ReadName<v1::GetBlobRequest>};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  kReaders[data[0] % kReaders.size()](bytes);
  return 0;
}
