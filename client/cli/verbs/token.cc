#include <iostream>
#include <memory>

#include "absl/strings/str_format.h"
#include "client/cli/verbs/named_content.h"
#include "client/cli/verbs/verbs.h"
#include "core/base/random_bits.h"
#include "core/domain/access_token.h"
#include "core/domain/fields.h"
#include "core/store/draw_codec/sha256.h"

namespace chainfleet {
namespace {

constexpr int kWords = 4;  // 64 bits each

struct CreateOptions {
  std::string role, tenant, note;
  bool models = false;
  absl::Duration lifetime;
  int64_t uses = 0;
};

// A token of 256 random bits. The prefix lets scanners for leaked secrets find it.
std::string NewToken() {
  std::string token = "cf_";
  for (int i = 0; i < kWords; ++i) absl::StrAppendFormat(&token, "%016x", RandomBits());
  return token;
}

// Prints the token alone on stdout, so that scripts may keep it, and what it is on stderr.
absl::Status Create(Invocation* run, const CreateOptions& options) {
  const std::string token = NewToken();
  v1::CreateTokenRequest request;
  request.set_sha256(Sha256Hex(token));
  request.set_tenant(options.tenant);
  request.set_role(static_cast<v1::Role>(static_cast<int>(*EnumFromName<Role>(options.role)) + 1));
  request.set_puts_models(options.models);
  request.set_note(options.note);
  request.set_lifetime_seconds(
      absl::ToInt64Seconds(absl::Ceil(options.lifetime, absl::Seconds(1))));  // 0 is the default
  request.set_max_uses(options.uses);
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Token made, client.CreateToken(request));
  std::cerr << TokenTable({made}).Render() << "the token follows; nothing will show it again\n";
  std::cout << token << std::endl;
  if (std::cout) return absl::OkStatus();
  CHAINFLEET_RETURN_IF_ERROR(client.RevokeToken(made.id()));
  return absl::ResourceExhaustedError("the token could not be written to standard output, and is revoked again");
}

absl::Status Revoke(Invocation* run, const std::string& id) {
  CHAINFLEET_ASSIGN_OR_RETURN(Client client, run->Connect());
  CHAINFLEET_RETURN_IF_ERROR(client.RevokeToken(id));
  std::cout << id << " revoked\n";
  return absl::OkStatus();
}

}  // namespace

void AddToken(CLI::App* program, Invocation* run) {
  const auto options = std::make_shared<CreateOptions>();
  const auto id = std::make_shared<std::string>();
  CLI::App* token = AddGroup(program, "token", "Make and revoke the tokens of callers and workers; for admins");
  CLI::App* create = AddVerb(token, run, "create", "Make a token and print it; the server keeps its SHA-256 only",
                             "  chainfleet token create --role predictor --ttl 30d --note \"web shop\"\n"
                             "  chainfleet token create --role worker --tenant vision --ttl 1h --uses 8 > join.token",
                             [=] { return Create(run, *options); });
  create
      ->add_option("--role", options->role,
                   "What its holder may do: predictor, reader, writer, operator or admin, each more than the one "
                   "before; or worker")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(EnumNames(Role()).begin(), EnumNames(Role()).end())))
      ->option_text("ROLE");
  create
      ->add_option(
          "--tenant", options->tenant,
          "Tenant of the holder; default: yours. A worker takes only chains of this tenant; default: of all tenants, "
          "or of yours if you are an admin of one tenant")
      ->option_text("NAME");
  create->add_option("--uses", options->uses, "Workers that may join by it; default: any number")
      ->check(CountAtLeast(1))
      ->option_text("COUNT");
  AddDurationOption(create, "--ttl", &options->lifetime, "Time until it expires, such as 12h or 30d; default: 90d");
  create->add_option("--note", options->note, "What it is for")->option_text("TEXT");
  create->add_flag("--models", options->models, "The holder may also put TorchScript models, which are programs");
  CLI::App* list = AddVerb(token, run, "list", "List the tokens, with expired ones", "  chainfleet token list",
                           [=] { return ListNamed(run, "tokens", TokenTable, &Client::ListTokens); });
  CLI::App* revoke = AddVerb(token, run, "revoke", "Delete a token: calls with it are refused from now on",
                             "  chainfleet token revoke 4f1a9c02d7e8", [=] { return Revoke(run, *id); });
  revoke->add_option("NAME", *id, "Id of the token, as `token list` shows it")->required()->option_text("ID");
  for (CLI::App* verb : {create, list, revoke}) AddServerOptions(verb, run);
  AddOutputOption(list, run);
}

}  // namespace chainfleet
