#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/limits.h"
#include "core/domain/sweep_points.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobSpec SweptJob(const SweepSpec& sweep, const SamplerSpec& sampler = {EmcmcSpec{}}) {
  JobSpec spec;
  spec.name = "sweep";
  spec.model.kind = BuiltinModel{"lenet5", {}};
  spec.dataset = "digits";
  spec.prior.kind = GaussianPrior{25};
  spec.sampler = sampler;
  spec.schedule = {StepScale::kLearningRate, CyclicalSchedule{.initial = 0.2, .final = 0.01, .cycles = 2}};
  spec.num_steps = 100;
  spec.chains = 3;
  spec.sweep = sweep;
  return spec;
}
const SweepSpec kTwoByThree = {.temperature = {1e-4, 1}, .eta = {4e-4, 1e-3, 0.1}};

// "PATH: MESSAGE" of each violation.
std::vector<std::string> Errors(const JobSpec& spec) {
  std::vector<std::string> errors;
  for (const FieldViolation& v : Validate(spec)) errors.push_back(v.path + ": " + v.message);
  return errors;
}

TEST(Sweep, HasAPointForEachCombinationTheLastListFastest) {
  EXPECT_EQ(NumPoints(kTwoByThree), 6);
  EXPECT_EQ(PointName(kTwoByThree, 0), "temperature=0.0001,eta=0.0004");
  EXPECT_EQ(PointName(kTwoByThree, 1), "temperature=0.0001,eta=0.001");
  EXPECT_EQ(PointName(kTwoByThree, 5), "temperature=1,eta=0.1");
  EXPECT_EQ(NumPoints(SweepSpec{}), 1);
  EXPECT_EQ(PointName(SweepSpec{}, 0), "");
}

TEST(Sweep, GivesEachPointChainsOfItsOwn) {
  const JobSpec spec = SweptJob(kTwoByThree);
  EXPECT_EQ(NumChains(spec), 18);
  EXPECT_EQ(PointOf(spec, 2), 0);
  EXPECT_EQ(PointOf(spec, 3), 1);
  EXPECT_EQ(PointOf(spec, 17), 5);
}

TEST(Sweep, WithoutOneEveryChainIsOfTheOnlyPoint) {
  const JobSpec spec = SweptJob({});
  EXPECT_EQ(PointOf(spec, spec.chains - 1), 0);
  EXPECT_EQ(PointOf(spec, spec.chains + 5), 0) << "added since";
}

TEST(Sweep, NamesTellNumbersApartThatSixDigitsDoNot) {
  const SweepSpec close = {.eta = {0.1, std::nextafter(0.1, 1)}};
  EXPECT_NE(PointName(close, 0), PointName(close, 1));
  EXPECT_EQ(FindPoint(close, PointName(close, 1)).value(), 1);
}

TEST(Sweep, PutsThePointsNumbersIntoTheJob) {
  SweepSpec sweep = {.temperature = {0.5}, .prior_precision = {1, 7}, .eta = {0.2}};
  sweep.learning_rate = {0.05, 0.1};
  const JobSpec one = SpecAt(SweptJob(sweep), 3);
  EXPECT_FALSE(one.sweep.any());
  EXPECT_EQ(one.schedule.kind, ScheduleKind(CyclicalSchedule{.initial = 0.1, .final = 0.01, .cycles = 2}));
  EXPECT_EQ(one.temperature, 0.5);
  EXPECT_EQ(one.prior.precision(), 7);
  EXPECT_EQ(std::get<EmcmcSpec>(one.sampler.kind).eta, 0.2);
  const JobSpec plain = SweptJob({});
  EXPECT_EQ(SpecAt(plain, 0), plain);
}

TEST(Sweep, ABsamSweepVariesThePriorOfTheSampler) {
  JobSpec spec = SweptJob({.prior_precision = {1, 2}, .rho = {0, 0.1}}, {BsamSpec{}});
  spec.prior = {};
  EXPECT_THAT(Errors(spec), IsEmpty());
  const auto bsam = std::get<BsamSpec>(SpecAt(spec, 3).sampler.kind);
  EXPECT_EQ(bsam.prior_precision, 2);
  EXPECT_EQ(bsam.rho, 0.1);
}

TEST(Sweep, FindsAPointByNumberOrByWhatSinglesItOut) {
  EXPECT_EQ(FindPoint(kTwoByThree, "4").value(), 4);
  EXPECT_EQ(FindPoint(kTwoByThree, "eta=1e-3,temperature=1.0").value(), 4);
  EXPECT_EQ(FindPoint(SweepSpec{.eta = {1, 2}}, "eta=2").value(), 1);
  EXPECT_EQ(FindPoint(SweepSpec{.eta = {1}}, "").value(), 0) << "the only one";
}

TEST(Sweep, RefusesToGuessAPointAndListsThem) {
  const absl::Status none = FindPoint(kTwoByThree, "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(none));
  EXPECT_EQ(ReasonOf(none), "POINT_REQUIRED");
  EXPECT_THAT(std::string(none.message()), HasSubstr("0: temperature=0.0001,eta=0.0004; 1: "));
  for (const char* text : {"6", "-1", "eta=0.001", "eta=7", "eta", "rho=1", "eta=x", "99999999999", "temperature=1,"}) {
    const absl::Status status = FindPoint(kTwoByThree, text).status();
    EXPECT_EQ(ReasonOf(status), "NO_SUCH_POINT") << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("5: temperature=1,eta=0.1")) << text;
  }
}

TEST(Sweep, AJobWithoutASweepHasOnlyPointZero) {
  EXPECT_EQ(FindPoint(SweepSpec{}, "").value(), 0);
  EXPECT_EQ(FindPoint(SweepSpec{}, "0").value(), 0);
  EXPECT_EQ(ReasonOf(FindPoint(SweepSpec{}, "1").status()), "NO_SUCH_POINT");
  EXPECT_EQ(ReasonOf(FindPoint(SweepSpec{}, "eta=1").status()), "NO_SUCH_POINT");
}

TEST(Sweep, TakesWhatTheJobHas) {
  EXPECT_THAT(Errors(SweptJob(kTwoByThree)), IsEmpty());
  EXPECT_THAT(Errors(SweptJob({.friction = {0.1, 1}}, {SghmcSpec{}})), IsEmpty());
  EXPECT_THAT(Errors(SweptJob({.rho = {0.1, 1}}, {SamSpec{}})), IsEmpty());
  EXPECT_THAT(Errors(SweptJob({.learning_rate = {0.1, 1}, .prior_precision = {0, 4}})), IsEmpty());
}

TEST(Sweep, NamesTheNumberThatTheJobLacks) {
  EXPECT_THAT(Errors(SweptJob({.eta = {1, 2}}, {SgldSpec{}})), ElementsAre("sweep.eta: the sampler sgld has no eta"));
  EXPECT_THAT(Errors(SweptJob({.friction = {1, 2}})), ElementsAre("sweep.friction: the sampler emcmc has no friction"));
  EXPECT_THAT(Errors(SweptJob({.step_size = {1, 2}})),
              ElementsAre("sweep.step_size: the job has a learning_rate: sweep that"));
  JobSpec spec = SweptJob({.prior_precision = {1, 2}}, {SgldSpec{}});
  for (const PriorKind& prior : {PriorKind(LaplacePrior{}), PriorKind(GaussianPrior{1, {{"fc1", 2}}})}) {
    spec.prior.kind = prior;
    EXPECT_THAT(Errors(spec), ElementsAre("sweep.prior_precision: the prior is not a Gaussian of one precision"));
  }
}

TEST(Sweep, NamesTheValueThatIsOutOfItsBounds) {
  EXPECT_THAT(Errors(SweptJob({.temperature = {1, -1}, .eta = {1, 0, 1}})),
              ElementsAre("sweep.temperature[1]: temperature must be finite and not negative, is -1",
                          "sweep.eta[1]: sampler.emcmc.eta must be above 0, is 0", "sweep.eta[2]: 1 is given twice"));
  EXPECT_THAT(Errors(SweptJob({.learning_rate = {0.1, 0.001}})),
              ElementsAre(HasSubstr("sweep.learning_rate[1]: learning_rate.cyclical.final must lie")));
  JobSpec potential = SweptJob({.prior_precision = {1}}, {SgldSpec{}});
  potential.model.kind = GaussianPotential{};
  potential.dataset = "";
  potential.prior = {};
  EXPECT_THAT(Errors(potential), ElementsAre(HasSubstr("sweep.prior_precision[0]: prior an analytic potential")));
}

TEST(Sweep, NamesThePointWhoseNumbersDoNotGoTogether) {
  JobSpec spec = SweptJob({.learning_rate = {0.1, 1}, .temperature = {0.01, 1}}, {SgldSpec{.gradient_noise = 10}});
  const auto violations = ValidateForData(spec, 1000);
  EXPECT_THAT(violations, IsEmpty()) << "alpha V at most 0.01, 2 T at least 0.02";
  std::get<SgldSpec>(spec.sampler.kind).gradient_noise = 100;
  const auto refused = ValidateForData(spec, 1000);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].path, "sampler.sgld.gradient_noise");
  EXPECT_THAT(refused[0].message, HasSubstr("at learning_rate=1,temperature=0.01"));
}

TEST(Sweep, BoundsPointsAndChains) {
  std::vector<double> many(17);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i + 1);
  EXPECT_THAT(Errors(SweptJob({.temperature = many, .eta = many})), ElementsAre(HasSubstr("more than 256 points")));
  JobSpec spec = SweptJob({.temperature = many});
  spec.chains = limits::kMaxChainsPerJob / 17 + 1;
  EXPECT_THAT(Errors(spec), ElementsAre(HasSubstr("17 points of 241 chains: at most 4096")));
  --spec.chains;
  EXPECT_THAT(Errors(spec), IsEmpty());
  const std::vector<double> huge(100'000, 1);
  EXPECT_GT(NumPoints({huge, huge, huge, huge, huge, huge, huge}), limits::kMaxSweepPoints);
}

double CpuSeconds(const std::function<void()>& run) {
  const auto used = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  };
  const double before = used();
  run();
  return used() - before;
}

TEST(Sweep, ChecksTheModelOnceForManyPoints) {
  constexpr int64_t n = GaussianPotential::kMaxCovarianceDimension;
  GaussianPotential gaussian{.dimension = n};
  gaussian.covariance.resize(n * n);
  for (int64_t i = 0; i < n; ++i) gaussian.covariance[i * n + i] = 1;
  JobSpec spec;
  spec.name = "sweep";
  spec.model.kind = PotentialKind(gaussian);
  spec.schedule = {StepScale::kStepSize, ConstantSchedule{0.1}};
  spec.num_steps = 100;
  const double one = CpuSeconds([&] { EXPECT_THAT(Validate(spec), IsEmpty()); });
  for (int i = 0; i < 250; ++i) spec.sweep.temperature.push_back(1 + i);
  const double many = CpuSeconds([&] { EXPECT_THAT(Validate(spec), IsEmpty()); });
  EXPECT_LT(many, 20 * one + 0.2);
}

}  // namespace
}  // namespace chainfleet
