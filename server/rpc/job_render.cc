#include "server/rpc/job_render.h"

#include <cmath>

#include "core/domain/chain_memory.h"
#include "core/domain/chain_warnings.h"
#include "core/domain/sweep_points.h"
#include "core/wire/field_wire.h"
#include "core/wire/jobs_wire.h"
#include "core/wire/types_wire.h"

namespace chainfleet {
namespace {

int64_t NumExamples(const JobPlan& plan) { return plan.dataset ? plan.dataset->num_rows : 1; }

// The part of the report that is the same for all sweep points (docs/explanation/sampling.md).
v1::Job::Report CommonReport(const JobPlan& plan) {
  const int64_t num_examples = NumExamples(plan);
  const auto parameters =
      InferParameters(plan.spec.model, plan.dataset ? plan.dataset->input_shape : std::vector<int64_t>(),
                      plan.dataset ? NumClasses(plan.dataset->targets) : 0, StoredOf(plan));
  v1::Job::Report report;
  report.set_num_examples(num_examples);
  report.set_num_parameters(parameters.ok() ? NumParameters(*parameters) : 0);
  report.set_draws_per_chain(PlanSteps(plan.spec, num_examples).NumDraws());
  return report;
}

// Adds the numbers of one sweep point.
v1::Job::Report WithNumbers(v1::Job::Report report, const JobSpec& spec) {
  const double value = spec.schedule.initial_value(), n = static_cast<double>(report.num_examples());
  const bool is_rate = spec.schedule.scale == StepScale::kLearningRate;
  const auto* bsam = std::get_if<BsamSpec>(&spec.sampler.kind);  // has a prior of its own
  report.set_prior_precision(bsam != nullptr ? bsam->prior_precision : spec.prior.precision());
  report.set_temperature(spec.temperature);
  report.set_learning_rate(is_rate ? value : value * n);
  report.set_step_size(is_rate ? value / n : value);
  return report;
}

void RenderPoints(const JobView& view, v1::Job* job) {
  const JobSpec spec = WithoutContents(view.plan->spec);
  v1::Job::Report common = job->report();
  common.clear_stored_bytes();
  for (int32_t p = 0; p < NumPoints(spec.sweep); ++p) {
    v1::Job::Point* point = job->add_points();
    point->set_index(p);
    point->set_name(PointName(spec.sweep, p));
    *point->mutable_report() = WithNumbers(common, SpecAt(spec, p));
  }
  for (const ChainView& chain : view.chains) {
    v1::Job::Point* point = job->mutable_points(PointOf(spec, chain.id.index));
    point->set_num_draws(point->num_draws() + chain.num_draws);
  }
}

// `spec` is the spec of the chain's sweep point.
v1::Chain RenderChain(const ChainView& view, const JobPlan& plan, const JobSpec& spec) {
  auto chain = Written<v1::Chain>(view);
  chain.set_point(PointOf(plan.spec, view.id.index));
  for (const std::string& warning : WarningsOf(view.stats, spec, NumExamples(plan))) chain.add_warnings(warning);
  return chain;
}

void RenderChains(const JobView& view, v1::Job* job) {
  const JobSpec spec = WithoutContents(view.plan->spec);
  JobSpec at_point;
  int32_t point = -1;
  for (const ChainView& chain : view.chains) {
    if (const int32_t own = PointOf(spec, chain.id.index); own != point) {
      at_point = SpecAt(spec, point = own);  // chains of a point are adjacent: make one copy for all
    }
    *job->add_chains() = RenderChain(chain, *view.plan, at_point);
  }
}

void RenderInputs(const JobPlan& plan, v1::Job* job) {
  job->mutable_inputs()->set_type(ToProto(plan.dataset->input_type));
  const std::vector<int64_t>& shape = plan.dataset->input_shape;
  job->mutable_inputs()->mutable_shape()->Add(shape.begin(), shape.end());
  *job->mutable_inputs()->mutable_normalisation() = ToProto(plan.normalisation.Spelled());
  for (const TensorSignature& column : ColumnsOf(plan)) {
    *job->mutable_inputs()->add_columns() = Written<v1::TensorSignature>(column);
  }
  const std::vector<std::string>& names = plan.dataset->class_names;
  job->mutable_inputs()->mutable_class_names()->Add(names.begin(), names.end());
  if (std::holds_alternative<Numbers>(plan.dataset->targets)) {
    *job->mutable_inputs()->mutable_target_units() = ToProto(plan.target_units);
  }
}

}  // namespace

v1::Job RenderListedJob(const ListedJob& listed) {
  const JobPlan& plan = *listed.plan;
  v1::Job job;
  job.set_id(listed.id);
  job.set_tenant(listed.tenant);
  *job.mutable_spec() = ToProto(plan.spec);
  job.set_intent(ToProto(listed.intent));
  job.set_state(ToProto(listed.state));
  *job.mutable_created_at() = ToProto(listed.created_at);
  if (listed.finished_at) *job.mutable_finished_at() = ToProto(*listed.finished_at);
  for (const auto& [point, why] : listed.stopped) {
    v1::Job::Stopped* stopped = job.add_stopped();
    stopped->set_point(point);
    stopped->set_why(why);
  }
  job.set_num_draws(listed.num_draws);
  job.set_steps_done(listed.step);
  job.set_steps_total(listed.total_steps);
  job.set_newest_version(listed.newest_version);
  if (plan.dataset) job.set_dataset_digest(plan.dataset->digest);
  job.set_num_chains(NumChains(plan.spec));
  *job.mutable_report() = CommonReport(plan);
  const int64_t draw_bytes = EstimateDrawBytes(plan, job.report().num_parameters());
  if (!plan.spec.sweep.any()) *job.mutable_report() = WithNumbers(job.report(), plan.spec);
  job.mutable_report()->set_stored_bytes(EstimateStoredBytes(plan, draw_bytes));
  return job;
}

v1::Job RenderJob(const JobView& view) {
  v1::Job job = RenderListedJob(view);
  RenderChains(view, &job);
  job.mutable_aliases()->Add(view.aliases.begin(), view.aliases.end());
  if (view.plan->dataset) RenderInputs(*view.plan, &job);
  if (view.plan->spec.sweep.any()) RenderPoints(view, &job);
  return job;
}

void RenderDiagnostics(const std::vector<Diagnostic>& diagnostics, v1::Job* job) {
  for (const Diagnostic& found : diagnostics) {
    v1::Job::Diagnostic& diagnostic = *job->add_diagnostics() = Written<v1::Job::Diagnostic>(found);
    if (!std::isnan(found.rhat)) diagnostic.set_rhat(found.rhat);
  }
}

v1::Traces RenderTraces(const std::string& quantity, const std::vector<TracedChain>& chains,
                        const std::vector<std::string>& quantities) {
  v1::Traces traces;
  traces.set_quantity(quantity);
  traces.mutable_quantities()->Add(quantities.begin(), quantities.end());
  for (const TracedChain& traced : chains) {
    *traces.add_chains() = Written<v1::Traces::Chain>(traced);
  }
  return traces;
}

v1::ListEventsResponse RenderEvents(const std::vector<EventLog::Event>& events) {
  v1::ListEventsResponse response;
  for (const EventLog::Event& event : events) {
    v1::Event* rendered = response.add_events();
    rendered->set_number(event->number);
    *rendered->mutable_time() = ToProto(event->time);
    rendered->set_level(event->level < LogLevel::kWarning ? v1::Event::INFO : v1::Event::WARNING);
    rendered->set_message(event->message);
    if (event->chain) rendered->set_chain(*event->chain);
    rendered->mutable_fields()->insert(event->fields.begin(), event->fields.end());
  }
  return response;
}

v1::DatasetRowValues RenderRows(const RowValues& rows) { return Written<v1::DatasetRowValues>(rows); }

v1::Snapshot RenderVersion(const Version& version, const std::vector<Alias>& aliases) {
  v1::Snapshot rendered;
  rendered.set_job_id(version.job);
  rendered.set_version(version.number);
  rendered.set_num_draws(version.num_draws());
  *rendered.mutable_created_at() = ToProto(version.created_at);
  for (const Alias& alias : aliases) {
    if (alias.number == version.number) rendered.add_aliases(alias.name);
  }
  return rendered;
}

v1::Alias RenderAlias(const Alias& alias) {
  v1::Alias rendered;
  rendered.set_name(alias.name);
  rendered.set_job_id(alias.job);
  rendered.set_version(alias.number);
  return rendered;
}

v1::Dataset RenderDataset(const Dataset& dataset) {
  v1::Dataset rendered = ToProto(dataset);
  rendered.clear_shards();
  return rendered;
}

v1::Worker RenderWorker(const WorkerView& view, bool serving) {
  v1::Worker worker;
  worker.set_id(view.id);
  worker.set_host(view.host);
  worker.set_device(view.device);
  worker.set_chain_slots(view.chain_slots);
  worker.set_chains(view.chains);
  worker.set_seconds_since_sync(absl::ToDoubleSeconds(view.since_sync));
  worker.set_draining(view.draining);
  worker.set_serving(serving);
  return worker;
}

}  // namespace chainfleet
