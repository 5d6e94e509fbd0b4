#include "worker/numerics/models/model_file.h"

#include <cstdint>
#include <span>
#include <utility>

#include "worker/numerics/models/exported_steps.h"

namespace chainfleet {
namespace {

int64_t SizeOf(const ScriptFile& script) { return std::ssize(*script.bytes); }

int64_t SizeOf(const ExportedModel& exported) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : exported.tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

absl::Status Refused(const absl::Status& status) {
  return InvalidFields({{"model.exported", std::string(status.message())}});
}

}  // namespace

int64_t ModelFile::size_bytes() const {
  return std::visit([](const auto& file) { return SizeOf(file); }, content);
}

absl::StatusOr<std::shared_ptr<const ModelFile>> ReadExportedModel(const ByteSource& source) {
  absl::StatusOr<ExportedProgram> program = ReadExportedProgram(source);
  if (!program.ok()) return Refused(program.status());
  std::vector<at::Tensor> tensors;
  const auto room = [&](const ExportedTensor& tensor) {
    const at::Tensor& made = tensors.emplace_back(EmptyFor(tensor));
    return std::span<char>(static_cast<char*>(made.mutable_data_ptr()), made.nbytes());
  };
  if (const absl::Status read = ReadExportedTensors(source, *program, room); !read.ok()) return Refused(read);
  return std::make_shared<const ModelFile>(ModelFile{ExportedModel{*std::move(program), std::move(tensors)}});
}

absl::StatusOr<std::shared_ptr<const ModelFile>> ReadModelFile(std::shared_ptr<const std::string> bytes) {
  if (IsExportedProgram(*bytes)) return ReadExportedModel(*bytes);
  return std::make_shared<const ModelFile>(ModelFile{ScriptFile{std::move(bytes), nullptr}});
}

}  // namespace chainfleet
