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
     R"({"sampler": {"swag": {"momentum": 0.9, "start_epoch": 161, "max_rank": 20, "scale": 0.5, "draws": 30}},
         "batch_size": 128, "learning_rate": {"swag": {"initial": 0.05, "final": 0.01, "start_epoch": 161}},
         "num_epochs": 300, "augmentation": {"crop_padding": 4, "flip": true}})"},
    {"pbnn-seed", 0, false,
     R"({"sampler": {"penalty_mh": {"penalty": "plain", "effective_data_size": 128}}, "batch_size": 128})"},
    {"pbnn-cd", 0, false, R"({"sampler": {"penalty_mh": {"penalty": "corrected"}}, "batch_size": 128})"},
};

std::string Names() {
  std::string names;
  for (const Preset& preset : kPresets) absl::StrAppend(&names, names.empty() ? "" : ", ", preset.name);
  return names;
}

}  // namespace

absl::StatusOr<v1::JobSpec> ExpandPreset(const v1::JobSpec& spec, int64_t num_examples) {
  for (const Preset& preset : kPresets) {
    if (spec.preset() != preset.name) continue;
    v1::JobSpec full;
    const auto parsed = google::protobuf::util::JsonStringToMessage(preset.spec, &full);
    CHAINFLEET_CHECK(parsed.ok()) << "preset " << preset.name << ": " << parsed.ToString();
    const auto n = static_cast<double>(num_examples);
    if (preset.weight_decay > 0) full.mutable_prior()->mutable_gaussian()->set_precision(n * preset.weight_decay);
    if (preset.temperature_one_n) full.set_temperature(1 / n);
    std::vector<const google::protobuf::FieldDescriptor*> said;
    spec.GetReflection()->ListFields(spec, &said);
    for (const auto* field : said) full.GetReflection()->ClearField(&full, field);
    if (spec.has_learning_rate() || spec.has_step_size()) full.clear_schedule();
    if (spec.has_num_steps()) full.clear_num_epochs();
    full.MergeFrom(spec);
    full.clear_preset();
    return full;
  }
  return InvalidFields({{"preset", absl::StrCat("\"", spec.preset(), "\"; allowed: ", Names())}});
}

}  // namespace chainfleet
