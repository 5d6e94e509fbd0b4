#include "client/cli/views/resource_view.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/views/job_view.h"
#include "core/domain/parameter_shape.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

std::string ShapeOf(const auto& sizes) { return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]"); }

std::string RoleName(v1::Role role) { return absl::AsciiStrToLower(v1::Role_Name(role)); }
std::string FormatExpiry(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%MZ", FromProto(time), absl::UTCTimeZone());
}

}  // namespace

Table DatasetTable(const std::vector<v1::Dataset>& datasets) {
  Table table({"DATA SET", ">ROWS", "SHAPE", "TYPE", "TARGETS", "SHA-256"});
  for (const v1::Dataset& dataset : datasets) {
    table.AddRow(
        {dataset.name(), absl::StrCat(dataset.num_rows()), ShapeOf(dataset.input_shape()),
         dataset.input_type() == v1::UINT8 ? "uint8" : "float32",
         dataset.target_type() == v1::FLOAT32_TARGETS ? "float32" : absl::StrCat(dataset.num_classes(), " classes"),
         dataset.digest().substr(0, 12)});
  }
  return table;
}

Table ModelTable(const std::vector<v1::StoredModel>& models) {
  Table table({"MODEL", "INPUTS", "OUTPUTS", ">PARAMETERS", ">SIZE", "SHA-256"});
  for (const v1::StoredModel& model : models) {
    std::vector<std::string> cells = {model.name(), "TorchScript", "", ""};
    if (model.has_signature()) {
      int64_t parameters = 0;
      for (const v1::TensorSignature& tensor : model.signature().parameters()) {
        parameters += NumValues({tensor.shape().begin(), tensor.shape().end()});
      }
      const auto render = [](std::string* text, const auto& input) {
        absl::StrAppend(text, input.type(), " ", ShapeOf(input.shape()));
      };
      const bool is_weights = model.signature().inputs().empty();
      cells = {model.name(), is_weights ? "weights" : absl::StrJoin(model.signature().inputs(), " + ", render),
               is_weights ? "" : ShapeOf(model.signature().output().shape()), absl::StrCat(parameters)};
    }
    cells.insert(cells.end(), {FormatBytes(model.object().size_bytes()), model.object().sha256().substr(0, 12)});
    table.AddRow(cells);
  }
  return table;
}

Table AliasTable(const std::vector<v1::Alias>& aliases) {
  Table table({"ALIAS", "JOB", ">VERSION"});
  for (const v1::Alias& alias : aliases) table.AddRow({alias.name(), alias.job_id(), absl::StrCat(alias.version())});
  return table;
}

Table WorkerTable(const std::vector<v1::Worker>& workers) {
  Table table({"WORKER", "HOST", "DEVICE", ">CHAINS", ">SLOTS", ">LAST SYNC", "SERVING", "DRAINING"});
  for (const v1::Worker& worker : workers) {
    table.AddRow({worker.id(), worker.host(), worker.device(), absl::StrCat(worker.chains()),
                  absl::StrCat(worker.chain_slots()), absl::StrCat(Fixed(worker.seconds_since_sync(), 1), "s"),
                  worker.serving() ? "yes" : "no", worker.draining() ? "yes" : "no"});
  }
  return table;
}

Table TokenTable(const std::vector<v1::Token>& tokens) {
  Table table({"TOKEN", "TENANT", "=ROLE", "=USES", "=EXPIRES", "NOTE", "+CREATED BY"});
  for (const v1::Token& token : tokens) {
    table.AddRow({token.id(), token.tenant(),
                  absl::StrCat(RoleName(token.role()), token.puts_models() ? " models" : ""),
                  token.max_uses() == 0 ? "" : absl::StrCat(token.uses(), " of ", token.max_uses()),
                  FormatExpiry(token.expires_at()), token.note(), token.created_by()});
  }
  return table;
}

Table CallerTable(const v1::Caller& caller) {
  Table table({"PRINCIPAL", "TENANT", "=ROLE", "=EXPIRES"});
  table.AddRow({caller.principal(), caller.tenant(), RoleName(caller.role()),
                caller.has_expires_at() ? FormatExpiry(caller.expires_at()) : "never"});
  return table;
}

Table LimitTable(const v1::Caller& caller) {
  Table table({"RESOURCE", ">USED", ">LIMIT"});
  for (const v1::TenantLimit& limit : caller.limits()) {
    const auto render = [&](int64_t value) {
      return limit.name() == "stored_bytes" ? FormatBytes(value) : absl::StrCat(value);
    };
    table.AddRow({limit.name(), limit.has_used() ? render(limit.used()) : "",
                  limit.has_limit() ? render(limit.limit()) : "none"});
  }
  return table;
}

Table OperationTable(const std::vector<v1::EvaluationOperation>& evaluations, absl::Time now) {
  Table table({"EVALUATION", "JOB", ">VERSION", "DATASET", "=STATE", ">AGE", "ERROR"});
  for (const v1::EvaluationOperation& item : evaluations) {
    table.AddRow({item.id(), item.job_id(), absl::StrCat(item.request().selection().version()),
                  item.request().dataset(), v1::EvaluationOperation::State_Name(item.state()),
                  FormatAge(now - FromProto(item.created_at())), item.error()});
  }
  return table;
}

Table TraceTable(const std::vector<v1::Traces>& traces) {
  Table table({"QUANTITY", ">CHAIN", ">STEP", ">VALUE"});
  for (const v1::Traces& of : traces) {
    for (const v1::Traces::Chain& chain : of.chains()) {
      for (int i = 0; i < chain.values_size() && i < chain.steps_size(); ++i) {
        table.AddRow({of.quantity(), absl::StrCat(chain.chain()), absl::StrCat(chain.steps(i)),
                      Significant(chain.values(i), 9)});
      }
    }
  }
  return table;
}

std::string NameOf(const v1::Snapshot& snapshot) { return absl::StrCat(snapshot.version()); }
std::string NameOf(const v1::Chain& chain) { return absl::StrCat(chain.id().job(), "/", chain.id().index()); }

}  // namespace chainfleet
