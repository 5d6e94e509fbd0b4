#include "server/election.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/store/state_store/postgres_uri.h"
#include "server/rpc/gateway/gateway.h"
#include "server/rpc/standby_server.h"

namespace chainfleet {
namespace {

constexpr absl::Duration kElectionInterval = absl::Seconds(1);

// Logs the start and the end of an outage only: the database is asked every second.
void TellOfOutage(const absl::Status& asked, bool* away) {
  if (asked.ok() != *away) return;
  *away = !asked.ok();
  if (*away) return Log(LogLevel::kWarning, "standby cannot read the leader, retrying", {{"error", asked.ToString()}});
  Log(LogLevel::kInfo, "standby reads the leader again");
}

// The flag that must not be used while another coordinator writes to the store; null if none is given.
const char* AloneFlag(const PostgresOptions& options) {
  if (options.opening == Opening::kRestored) return "--restored";
  return options.home.moved ? "--objects-moved" : nullptr;
}

// The ports of a coordinator that does not lead.
struct Standby {
  std::unique_ptr<StandbyServer> grpc;
  std::unique_ptr<HttpServer> http;  // its calls are answered by `grpc`
};

absl::StatusOr<Standby> StandBy(const StandbyAddresses& listen, const Clock* clock, Executor* executor, RngKey ids) {
  Standby standby;
  CHAINFLEET_ASSIGN_OR_RETURN(standby.grpc, StandbyServer::Start(listen.grpc, clock, ids));
  if (listen.http.address == "off") return standby;
  const auto refuse = [](const std::string&, const std::string&) { return absl::UnavailableError("standing by"); };
  CHAINFLEET_ASSIGN_OR_RETURN(
      standby.http,
      OpenHttp(
          listen.http, /*is_open=*/false,
          {.channel = standby.grpc->InProcessChannel(), .authorize = refuse, .clock = clock, .executor = executor}));
  return standby;
}

}  // namespace

bool IsPostgres(const std::string& state) {
  return absl::StartsWith(state, "postgres://") || absl::StartsWith(state, "postgresql://");
}

void WarnOfPasswordInArguments(const std::string& state, int argc, char** argv) {
  const auto ends_in_state = [&](const char* argument) { return absl::EndsWith(argument, state); };
  if (!IsPostgres(state) || std::none_of(argv, argv + argc, ends_in_state) || !HasPassword(state)) return;
  Log(LogLevel::kWarning,
      "all users of this host can read the password in --state: set CHAINFLEET_STATE or PGPASSFILE instead");
}

absl::StatusOr<std::optional<Lead>> WaitToLead(const PostgresOptions& options, const StandbyAddresses& listen,
                                               RngKey request_ids, const std::function<bool(absl::Duration)>& pause) {
  const SystemClock clock;
  ThreadPool executor(1);
  std::optional<Standby> standby;
  std::string known;
  bool away = false;
  CHAINFLEET_ASSIGN_OR_RETURN(std::unique_ptr<PostgresLeader> leader, PostgresLeader::Connect(options));
  do {
    absl::StatusOr<PostgresLeader::Election> election = leader->TakeOver();
    const bool hopeless = !standby || ReasonOf(election.status()) == "OTHER_STORE";
    if (!election.ok() && hopeless) return election.status();
    TellOfOutage(election.status(), &away);
    if (election.ok() && election->store != nullptr) return Lead{std::move(leader), std::move(election->store)};
    if (const char* flag = AloneFlag(options); election.ok() && flag != nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(flag, ": the coordinator at ", election->leader_address,
                                                        " leads on this database: stop all others first"));
    }
    if (!standby) {
      CHAINFLEET_ASSIGN_OR_RETURN(standby, StandBy(listen, &clock, &executor, request_ids));
    }
    const std::string now = election.ok() ? election->leader_address : "";
    standby->grpc->SetLeader(now);
    if (election.ok() && now != known) Log(LogLevel::kInfo, "standing by", {{"leader", known = now}});
  } while (pause(kElectionInterval));
  return std::nullopt;
}

LeadKeeper::LeadKeeper(std::unique_ptr<PostgresLeader> leader, absl::Duration term, const Clock* clock,
                       Executor* executor, std::function<void(const absl::Status&)> on_lost)
    : leader_(std::move(leader)),
      term_(term),
      clock_(clock),
      executor_(executor),
      on_lost_(std::move(on_lost)),
      renewed_(clock->Monotonic()) {
  executor_->ScheduleAfter(term_ / 3, [this] { Renew(); });
  executor_->ScheduleAfter(term_, [this] { WatchTerm(); });
}

LeadKeeper::~LeadKeeper() {
  if (const absl::Status status = leader_->Resign(); !status.ok()) {
    Log(LogLevel::kWarning, "leadership not resigned: a standby takes over when the term ends",
        {{"error", status.ToString()}});
  }
}

void LeadKeeper::Renew() {
  absl::Duration asked = clock_->Monotonic();
  absl::Status status = leader_->Renew();
  if (ReasonOf(status) == "STORE_UNREACHABLE") {  // it found the connection broken; the next statement connects again
    asked = clock_->Monotonic();
    status = leader_->Renew();
  }
  if (status.ok()) {
    const MutexLock lock(&mutex_);
    renewed_ = asked;
  } else {
    Log(LogLevel::kWarning, "leadership not renewed", {{"error", status.ToString()}});
    if (ReasonOf(status) == "NOT_LEADER") return Lose(status);
  }
  executor_->ScheduleAfter(term_ / 3, [this] { Renew(); });
}

void LeadKeeper::WatchTerm() {
  const absl::Duration left = [this] {
    const MutexLock lock(&mutex_);
    return renewed_ + term_ - clock_->Monotonic();
  }();
  if (left > absl::ZeroDuration()) return executor_->ScheduleAfter(left, [this] { WatchTerm(); });
  Lose(absl::UnavailableError(absl::StrCat("leadership not renewed for ", absl::FormatDuration(term_))));
}

void LeadKeeper::Lose(const absl::Status& status) {
  {
    const MutexLock lock(&mutex_);
    if (std::exchange(lost_, true)) return;
  }
  Log(LogLevel::kError, "leadership lost: this process must end", {{"error", status.ToString()}});
  on_lost_(status);
}

}  // namespace chainfleet
