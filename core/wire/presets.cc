#include "core/wire/presets.h"

#include <google/protobuf/util/json_util.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status.h"

namespace chainfleet {
namespace {

struct Preset {
  const char* name;
  double weight_decay;     // lambda = N wd
  bool temperature_one_n;  // T = 1 / N
  const char* spec;
};

constexpr Preset kPresets[] = {
    {"emcmc-official", 5e-4, false,
     R"({"sampler": {"emcmc": {"eta": 4e-4, "anchor_decay": true}}, "temperature": 1e-4, "batch_size": 128,
         "learning_rate": {"cyclical": {"initial": 0.5, "cycles": 4}}, "num_epochs": 200,
         "augmentation": {"crop_padding": 4, "flip": true},
         "collect": {"last_epochs_of_cycle": 2, "kinds": ["theta", "theta_a"]}})"},
    {"emcmc-exact", 5e-4, false,
     R"({"sampler": {"emcmc": {"eta": 4e-4}}, "temperature": 1e-4, "batch_size": 128,
         "learning_rate": {"cyclical": {"initial": 0.5, "cycles": 4}}, "num_epochs": 200,
         "augmentation": {"crop_padding": 4, "flip": true},
         "collect": {"last_epochs_of_cycle": 2, "kinds": ["theta", "theta_a"]}})"},
    {"csgld-official", 5e-4, true,
     R"({"sampler": {"sgld": {"noise_free_fraction": 0.9}}, "batch_size": 64,
         "learning_rate": {"cyclical": {"initial": 0.5, "cycles": 4}}, "num_epochs": 200,
         "augmentation": {"crop_padding": 4, "flip": true},
         "collect": {"last_epochs_of_cycle": 3}})"},
    {"csghmc-official", 5e-4, true,
     R"({"sampler": {"sghmc": {"friction": 0.9, "noise_free_fraction": 0.9}}, "batch_size": 64,
         "learning_rate": {"cyclical": {"initial": 0.5, "cycles": 4}}, "num_epochs": 200,
         "augmentation": {"crop_padding": 4, "flip": true},
         "collect": {"last_epochs_of_cycle": 3}})"},
    {"swag-official", 5e-4, false,
     R"({"sampler": {"swag": {"momentum": 0.9, "start_epoch": 162, "max_rank": 20, "scale": 0.5, "draws": 30}},
         "batch_size": 128, "learning_rate": {"swag": {"initial": 0.05, "final": 0.01, "start_epoch": 161}},
         "num_epochs": 300, "augmentation": {"crop_padding": 4, "flip": true}})"},
    {"pbnn-seed", 0, false, R"({"sampler": {"penalty_mh": {"penalty": "plain"}}, "batch_size": 128})"},
    {"pbnn-cd", 0, false, R"({"sampler": {"penalty_mh": {"penalty": "corrected"}}, "batch_size": 128})"},
};

// A script's exception for one data set or network. `spec` is merged into the preset's spec, field by field.
struct Exception {
  const char* preset;
  const char* builtin;  // "": any
  int64_t num_classes;  // 0: any
  double weight_decay;  // 0: the preset's own
  const char* spec;
};

constexpr Exception kExceptions[] = {
    {"emcmc-official", "", 100, 0, R"({"sampler": {"emcmc": {"eta": 8e-3}}})"},
    {"emcmc-exact", "", 100, 0, R"({"sampler": {"emcmc": {"eta": 8e-3}}})"},
    {"csgld-official", "", 100, 0, R"({"sampler": {"sgld": {"noise_free_fraction": 0.94}}})"},
    {"csghmc-official", "", 100, 0, R"({"sampler": {"sghmc": {"noise_free_fraction": 0.94}}})"},
    {"swag-official", "preresnet164", 0, 3e-4, R"({"learning_rate": {"swag": {"initial": 0.1}}})"},
    {"swag-official", "preresnet164", 100, 3e-4, R"({"learning_rate": {"swag": {"final": 0.05}}})"},
    {"swag-official", "wideresnet28x10", 0, 5e-4, R"({"learning_rate": {"swag": {"initial": 0.1, "final": 0.05}}})"},
};

void MergeJson(const char* json, v1::JobSpec* spec) {
  v1::JobSpec more;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &more);
  CHAINFLEET_CHECK(parsed.ok()) << json << ": " << parsed.ToString();
  spec->MergeFrom(more);
}

// Returns the script's own settings for this network and data.
v1::JobSpec Settings(const Preset& preset, const std::string& builtin, const PresetData& data) {
  v1::JobSpec full;
  MergeJson(preset.spec, &full);
  double weight_decay = preset.weight_decay;
  for (const Exception& exception : kExceptions) {
    if (std::string(preset.name) != exception.preset) continue;
    if (*exception.builtin != '\0' && builtin != exception.builtin) continue;
    if (exception.num_classes != 0 && data.num_classes != exception.num_classes) continue;
    MergeJson(exception.spec, &full);
    if (exception.weight_decay > 0) weight_decay = exception.weight_decay;
  }
  const auto n = static_cast<double>(data.num_examples);
  if (weight_decay > 0) full.mutable_prior()->mutable_gaussian()->set_precision(n * weight_decay);
  if (preset.temperature_one_n) full.set_temperature(1 / n);
  return full;
}

std::string Names() {
  std::string names;
  for (const Preset& preset : kPresets) absl::StrAppend(&names, names.empty() ? "" : ", ", preset.name);
  return names;
}

}  // namespace

absl::StatusOr<v1::JobSpec> ExpandPreset(const v1::JobSpec& spec, const PresetData& data) {
  for (const Preset& preset : kPresets) {
    if (spec.preset() != preset.name) continue;
    v1::JobSpec full = Settings(preset, spec.model().builtin(), data);
    std::vector<const google::protobuf::FieldDescriptor*> said;
    spec.GetReflection()->ListFields(spec, &said);
    for (const auto* field : said) full.GetReflection()->ClearField(&full, field);
    if (spec.has_learning_rate() || spec.has_step_size()) full.clear_schedule();
    if (spec.has_num_steps()) full.clear_num_epochs();
    full.MergeFrom(spec);
    full.clear_preset();
    // The script's loss is the loss of one mini-batch, independent of the mini-batch's size.
    if (spec.preset() == "pbnn-seed" && !spec.has_sampler()) {
      full.mutable_sampler()->mutable_penalty_mh()->set_effective_data_size(static_cast<double>(full.batch_size()));
    }
    return full;
  }
  return InvalidFields({{"preset", absl::StrCat("\"", spec.preset(), "\"; allowed: ", Names())}});
}

}  // namespace chainfleet
