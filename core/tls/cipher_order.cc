#include "core/tls/cipher_order.h"

#include <openssl/conf.h>

#include "core/base/check.h"
#include "core/tls/openssl_handles.h"

namespace chainfleet {
namespace {

constexpr char kSettings[] =
    "openssl_conf = all\n[all]\nssl_conf = tls\n[tls]\nsystem_default = server\n[server]\nOptions = ServerPreference\n";

}  // namespace

void PreferCiphersOfServer() {
  const BioHandle text(BIO_new_mem_buf(kSettings, -1));
  const std::unique_ptr<CONF, FreeWith<NCONF_free>> settings(NCONF_new(nullptr));
  CHAINFLEET_CHECK(NCONF_load_bio(settings.get(), text.get(), nullptr) == 1);
  CHAINFLEET_CHECK(CONF_modules_load(settings.get(), nullptr, 0) == 1);
}

}  // namespace chainfleet
