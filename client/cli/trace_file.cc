#include "client/cli/trace_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/array_csv.h"
#include "client/cli/output_file.h"
#include "core/formats/npz.h"

namespace chainfleet {
namespace {

struct Columns {
  std::vector<int64_t> chain, point, step;
  std::vector<std::pair<std::string, std::vector<double>>> values;  // by quantity
};

Columns ColumnsOf(const std::vector<v1::Traces>& traces) {
  std::map<std::pair<int32_t, int64_t>, int32_t> points;  // for each chain and step: running chains differ
  for (const v1::Traces& of : traces) {
    for (const v1::Traces::Chain& chain : of.chains()) {
      for (const int64_t step : chain.steps()) points[{chain.chain(), step}] = chain.point();
    }
  }
  Columns columns;
  std::map<std::pair<int32_t, int64_t>, size_t> rows;
  for (const auto& [place, point] : points) {
    rows.emplace(place, rows.size());
    columns.chain.push_back(place.first);
    columns.step.push_back(place.second);
    columns.point.push_back(point);
  }
  for (const v1::Traces& of : traces) {
    auto& values = columns.values.emplace_back(of.quantity(), std::vector<double>(rows.size(), std::nan(""))).second;
    for (const v1::Traces::Chain& chain : of.chains()) {
      const int count = std::min(chain.steps_size(), chain.values_size());
      for (int i = 0; i < count; ++i) values[rows.at({chain.chain(), chain.steps(i)})] = chain.values(i);
    }
  }
  return columns;
}

template <typename T>
Array ArrayOf(ArrayType type, const std::vector<T>& values) {
  return {type,
          {static_cast<int64_t>(values.size())},
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

}  // namespace

absl::StatusOr<std::vector<v1::Traces>> ReadTraces(Client* client, const std::string& name,
                                                   const std::string& quantity) {
  CHAINFLEET_ASSIGN_OR_RETURN(const v1::Job job, client->GetJob(name));
  std::vector<v1::Traces> traces(1);
  CHAINFLEET_ASSIGN_OR_RETURN(traces[0], client->GetTraces(job.id(), quantity));
  if (!quantity.empty()) return traces;
  std::set<std::string> others = {traces[0].quantities().begin(), traces[0].quantities().end()};
  for (const auto& found : job.diagnostics()) others.insert(found.quantity());  // servers before 0.1 list no quantities
  others.erase(traces[0].quantity());
  for (const std::string& other : others) {
    CHAINFLEET_ASSIGN_OR_RETURN(v1::Traces found, client->GetTraces(job.id(), other));
    traces.push_back(std::move(found));
  }
  return traces;
}

std::string TracesCsv(const std::vector<v1::Traces>& traces) {
  const Columns columns = ColumnsOf(traces);
  std::string text = "chain,point,step";
  for (const auto& [quantity, values] : columns.values) absl::StrAppend(&text, ",", quantity);
  for (size_t row = 0; row < columns.step.size(); ++row) {
    absl::StrAppend(&text, "\n", columns.chain[row], ",", columns.point[row], ",", columns.step[row]);
    for (const auto& [quantity, values] : columns.values) {
      text += ',';
      AppendNumber(values[row], &text);
    }
  }
  return text + "\n";
}

absl::StatusOr<int64_t> WriteTraces(const std::vector<v1::Traces>& traces, const std::string& path) {
  const Columns columns = ColumnsOf(traces);
  const auto rows = static_cast<int64_t>(columns.step.size());
  if (path.ends_with(".csv")) {
    CHAINFLEET_RETURN_IF_ERROR(WriteOutputFile(path, TracesCsv(traces)));
    return rows;
  }
  std::map<std::string, Array> arrays = {{"chain", ArrayOf(ArrayType::kInt64, columns.chain)},
                                         {"point", ArrayOf(ArrayType::kInt64, columns.point)},
                                         {"step", ArrayOf(ArrayType::kInt64, columns.step)}};
  for (const auto& [quantity, values] : columns.values) arrays[quantity] = ArrayOf(ArrayType::kFloat64, values);
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string bytes, WriteNpz(arrays));
  CHAINFLEET_RETURN_IF_ERROR(WriteOutputFile(path, bytes));
  return rows;
}

}  // namespace chainfleet
