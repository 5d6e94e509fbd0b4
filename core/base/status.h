// Errors of the whole tree: absl::Status with a machine-readable reason and, for bad input, the wrong fields.
//
// Expected failures travel as absl::Status/StatusOr; broken invariants are CHAINFLEET_CHECK (check.h). A reason is an
// UPPER_SNAKE constant ("LEASE_FENCED") that becomes google.rpc.ErrorInfo on the wire; field violations become
// BadRequest, and the time until the next attempt becomes RetryInfo.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace chainfleet {

// One wrong field of user input. `path` is dotted from the root ("sampler.emcmc.eta"); `message` names the rule.
struct FieldViolation {
  std::string path;
  std::string message;
  bool operator==(const FieldViolation&) const = default;
};

// Attaches `reason` to `status` and replaces an existing reason. OK stays OK.
absl::Status WithReason(absl::Status status, const std::string& reason);

// Returns the attached reason, or "".
std::string ReasonOf(const absl::Status& status);

// Returns the attached reason or, if there is none, the name of the code ("NOT_FOUND"). Never "" for an error: callers
// of other programs find a reason in every answer.
std::string ReasonOrCode(const absl::Status& status);

// Attaches the name of the bound that refused a call ("tenant_calls"), or returns it ("" if there is none).
absl::Status WithBound(absl::Status status, const std::string& bound);
std::string BoundOf(const absl::Status& status);

// RESOURCE_EXHAUSTED / `reason` with the name of the bound. docs/reference/errors.md lists the names.
absl::Status BoundReached(const std::string& bound, const std::string& message, const std::string& reason);

// Attaches the least time until the next attempt, or returns it: the attached time, else a second for reasons that pass
// without anybody's help, else zero (unknown).
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);
absl::Duration RetryAfterOf(const absl::Status& status);

// INVALID_ARGUMENT / INVALID_FIELD that lists all violations in the message and attaches them. OK if there are none.
absl::Status InvalidFields(const std::vector<FieldViolation>& violations);

// Returns the attached violations, empty if there are none.
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);

// Puts `context` + ": " before the message; keeps the payloads.
absl::Status Annotate(const absl::Status& status, const std::string& context);

}  // namespace chainfleet

#define CHAINFLEET_CONCAT_INNER(a, b) a##b
#define CHAINFLEET_CONCAT(a, b) CHAINFLEET_CONCAT_INNER(a, b)

// Returns from the enclosing function when `expr` is not OK.
#define CHAINFLEET_RETURN_IF_ERROR(expr)                              \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// CHAINFLEET_ASSIGN_OR_RETURN(auto x, MakeX()): assigns the value or returns the status.
#define CHAINFLEET_ASSIGN_OR_RETURN(lhs, expr) \
  CHAINFLEET_ASSIGN_OR_RETURN_INNER(CHAINFLEET_CONCAT(status_or_, __LINE__), lhs, expr)
#define CHAINFLEET_ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                                      \
  if (!result.ok()) return std::move(result).status();       \
  lhs = *std::move(result)
