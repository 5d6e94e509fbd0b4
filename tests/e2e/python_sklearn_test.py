"""The estimators in scikit-learn's own checks and tools, against a real server and a real worker. Run by pytest."""
import pickle

import fleet as fleets
import python_package  # noqa: F401  first: it says where the next ones are
import chainfleet as cf
import chainfleet.sklearn
import numpy
import pytest
import sklearn.datasets
from chainfleet.sklearn import ChainfleetClassifier, ChainfleetRegressor
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

SMALL = {"hidden_layer_sizes": (10,), "chains": 1, "epochs": 40, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def fleet():
    started = fleets.Fleet(workers=1)
    try:
        started.up()
        with pytest.MonkeyPatch.context() as patch, cf.connect(started.address) as connected:
            patch.setenv("CHAINFLEET_ADDRESS", started.address)
            yield connected
            chainfleet.sklearn._fleet_of(None).close()  # a server waits some seconds for idle connections when it ends
    finally:
        started.close()


@parametrize_with_checks([ChainfleetClassifier(**SMALL), ChainfleetRegressor(**SMALL)])
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    x, y = sklearn.datasets.make_moons(300, noise=0.1, random_state=1)
    return x, numpy.array(["left", "right"])[y]


@pytest.fixture(scope="module")
def line():
    source = numpy.random.default_rng(3)
    x = source.uniform(-1, 1, (400, 1))
    return x, 50 + 7 * x[:, 0] + 2 * source.normal(size=400)


@pytest.fixture(scope="module")
def classifier(moons):
    return ChainfleetClassifier((16,), chains=2, epochs=300, learning_rate=0.3, random_state=1).fit(*moons)


@pytest.fixture(scope="module")
def regressor(line):
    return ChainfleetRegressor((), chains=2, epochs=300, random_state=1).fit(*line)


def test_classes_are_predicted_by_their_names_with_the_job_s_probabilities(fleet, classifier, moons):
    assert classifier.classes_.tolist() == ["left", "right"]
    assert classifier.score(*moons) > 0.95
    made = fleet.job(classifier.job_id_).predict(moons[0].astype(numpy.float32))
    numpy.testing.assert_array_equal(classifier.predict_proba(moons[0]), made.mean_probability)
    assert made.draws_used == 2 * 150
    assert made.class_names == ("left", "right")


def test_probabilities_come_with_intervals_over_the_draws(fleet, classifier, moons):
    x = moons[0].astype(numpy.float32)
    probability, intervals = classifier.predict_proba(x, credible_intervals=[0.5, 0.9])
    assert intervals.shape == (300, 2, 2, 2)
    numpy.testing.assert_allclose(probability, classifier.predict_proba(x), rtol=1e-12)
    lower, upper = intervals[..., 0], intervals[..., 1]
    assert (0 <= lower).all() and (lower <= upper).all() and (upper <= 1).all()
    assert (lower[:, :, 1] <= lower[:, :, 0]).all() and (upper[:, :, 0] <= upper[:, :, 1]).all(), "a larger mass has a wider interval"
    members = fleet.job(classifier.job_id_).predict(x, members=True).members
    drawn = numpy.concatenate([member.probabilities for member in members])
    assert len(drawn) == 2 * 150
    inside = (lower[:, :, 1] - 1e-6 <= drawn) & (drawn <= upper[:, :, 1] + 1e-6)  # batches of other sizes round differently
    share = inside.mean(axis=0)  # the draws have equal weights
    assert share.min() >= 0.9 - 1e-9 and share[numpy.abs(probability - 0.5).argmin(axis=0)].min() < 0.95
    with pytest.raises(cf.errors.InvalidArgument, match="credible_intervals: 1.5"):
        classifier.predict_proba(x, credible_intervals=[1.5])


def test_numbers_come_with_deviation_and_intervals_that_hold_the_mass_that_they_say(regressor, line):
    mean, std, intervals = regressor.predict(line[0], return_std=True, credible_intervals=[0.5, 0.9])
    assert (mean.shape, std.shape, intervals.shape) == ((400,), (400,), (400, 2, 2))
    numpy.testing.assert_array_equal(mean, regressor.predict(line[0]))
    assert numpy.abs(mean - 50 - 7 * line[0][:, 0]).max() < 1
    assert numpy.abs(std - 2).max() < 0.5
    inside = (intervals[..., 0] < line[1][:, None]) & (line[1][:, None] < intervals[..., 1])
    numpy.testing.assert_allclose(inside.mean(axis=0), [0.5, 0.9], atol=0.07)
    with pytest.raises(cf.errors.InvalidArgument, match="credible_intervals: 1.5"):
        regressor.predict(line[0], credible_intervals=[1.5])


def test_without_hidden_layers_it_is_a_linear_regression(fleet, regressor):
    parameters = fleet.job(regressor.job_id_).draws().get(0, 0).parameters
    assert sum(value.size for value in parameters.values()) == 1 + 1 + 1  # weight, bias and the noise


def test_a_pickled_estimator_predicts_the_same_and_holds_no_token(classifier, moons, monkeypatch):
    monkeypatch.setenv("CHAINFLEET_TOKEN", "a-secret")
    content = pickle.dumps(classifier)
    assert b"a-secret" not in content
    numpy.testing.assert_array_equal(pickle.loads(content).predict_proba(moons[0]), classifier.predict_proba(moons[0]))


def test_the_same_seed_gives_the_same_draws_and_none_gives_others(moons):
    made = [clone(ChainfleetClassifier(**{**SMALL, "random_state": seed})).fit(*moons).predict_proba(moons[0]) for seed in (5, 5, None, None)]
    numpy.testing.assert_array_equal(made[0], made[1])
    assert not numpy.array_equal(made[2], made[3])


def test_a_search_over_samplers_and_priors_in_a_pipeline(fleet, moons):
    search = GridSearchCV(make_pipeline(MinMaxScaler(), ChainfleetClassifier(**SMALL)), {
        "chainfleetclassifier__sampler": [cf.SGLD(), cf.SGHMC(friction=0.2)],
        "chainfleetclassifier__options": [{"prior": cf.priors.Gaussian(precision=precision)} for precision in (1.0, 100.0)],
    }, cv=2).fit(*moons)
    spec = fleet.job(search.best_estimator_[-1].job_id_).describe().spec
    assert spec.prior.gaussian.precision == 1.0
    assert search.best_score_ > 0.8
    precise = [score for score, options in zip(search.cv_results_["mean_test_score"], search.cv_results_["param_chainfleetclassifier__options"])
               if options["prior"].precision == 100.0]
    assert max(precise) < search.best_score_


def test_errors_name_the_remedy(fleet, moons):
    with pytest.raises(TypeError, match="did you mean .temperature"):
        ChainfleetClassifier(**SMALL, options={"temperatur": 1}).fit(*moons)
    with pytest.raises(cf.errors.InvalidArgument, match="eta"):
        ChainfleetClassifier(**SMALL, sampler=cf.EMCMC(eta=-1)).fit(*moons)
    with pytest.raises(NotFittedError):
        ChainfleetRegressor().predict(moons[0])
    with pytest.raises(cf.errors.DeadlineExceeded):
        ChainfleetClassifier(**{**SMALL, "epochs": 1_000_000}, timeout=0.2).fit(*moons)
    fleet.job().cancel()
    with pytest.raises(cf.errors.InvalidArgument, match="host:port"):
        ChainfleetClassifier(**SMALL, address="nowhere").fit(*moons)


def test_a_deleted_job_predicts_no_more(fleet, moons):
    made = ChainfleetClassifier(**SMALL).fit(*moons)
    fleet.job(made.job_id_).delete()
    with pytest.raises(cf.errors.ChainfleetError) as caught:
        made.predict(moons[0])
    assert caught.value.reason == "NOT_SERVED"
