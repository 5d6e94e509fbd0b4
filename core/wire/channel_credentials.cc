#include "core/wire/channel_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

namespace chainfleet {
namespace {

constexpr unsigned kReloadSeconds = 2;

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const TlsFiles& files) {
  if (!files.any()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.authorities.empty() ? AuthoritiesFile("system") : files.authorities,
      kReloadSeconds));
  options.watch_root_certs();
  if (!files.certificate.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace chainfleet
