#!/usr/bin/env python3
"""Writes the dashboards into dashboards/*.json. Change them here and run it again; a test compares.

  deploy/grafana/dashboards.py [FOLDER]
"""
import json
import os
import sys

from panels import BAD, WARNING, choice, curves, dashboard, figure, mean_and_p99, quantiles, section, table

FAILOVER = ("Failover", "purple", "changes(chainfleet_leader[$__rate_interval]) > 0 and chainfleet_leader == 1", "{{instance}} leads")
PREEMPTION = ("Preemption", "orange", "sum(increase(chainfleet_preemptions_total[$__rate_interval])) > 0", "chains gave way to a higher tier")
EVENTS = [FAILOVER, PREEMPTION]
JOB = choice("job", "Job", "chainfleet_job_draws")
SILENCES = [(10, WARNING), (12.5, BAD)]  # seconds; a worker that is silent for its lease, 15 s, has no series any more
WORKER = choice("worker", "Worker", "chainfleet_fleet_worker_slots")


def per_second(metric, selector="", by=""):
    """The rate of a counter, summed over all labels but these."""
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (rate({metric}{selector}[$__rate_interval]))"


def fleet():
    now = [
        figure("Leaders", "sum(chainfleet_leader)", "none", "Coordinators that lead.", "anything but 1 for more than seconds: nobody answers.",
               [(2, BAD)], below=[(1, BAD)]),
        figure("Targets down", 'count(up{job=~"chainfleet-.*"} == 0) or vector(0)', "none", "Servers and workers that Prometheus does not reach.",
               "above 0.", [(1, BAD)]),
        figure("Alerts firing", 'count(ALERTS{alertstate="firing", component="chainfleet"}) or vector(0)', "none",
               "Alerts of deploy/prometheus that fire.", "above 0; each has a section in docs/guides/alerts.md.", [(1, BAD)]),
        figure("Workers", "sum(chainfleet_workers)", "none", "Workers that synchronised within their lease.", "0, or fewer than were started.",
               below=[(1, BAD)]),
        figure("Slots in use", 'sum(chainfleet_chains{state="LEASED"}) / sum(chainfleet_chain_slots)', "percentunit",
               "Share of chain slots in use.", "low while chains wait: their memory does not fit, or they rest between attempts.",
               decimals=0),
        figure("Waiting chains", "sum(chainfleet_waiting_chains)", "none", "Chains of running jobs that wait for a worker.", "above 0 and not falling."),
        figure("Longest wait", "max(chainfleet_waiting_seconds)", "s", "Time that the longest-waiting chain has waited.",
               "minutes where workers should be free; alert QueueAgeHigh above 15 minutes.", [(300, WARNING), (900, BAD)]),
        figure("Draws a second", per_second("chainfleet_committed_draws_total"), "cps", "Draws in accepted commits.",
               "0 while jobs run that are past their burn-in.", decimals=1)]
    work = [
        curves("Chains and slots", [('sum(chainfleet_chains{state="LEASED"})', "running"), ("sum(chainfleet_chain_slots)", "slots"),
                                    ("sum(chainfleet_waiting_chains)", "waiting")], "none",
               "Running chains, waiting chains and chain slots.", "waiting chains below free slots; slots that drop: workers are gone."),
        curves("Draws committed", [(per_second("chainfleet_committed_draws_total"), "draws")], "cps", "Draws in accepted commits, a second.",
               "a fall to 0 while chains run: commits are refused or the store is full."),
        curves("Jobs by state", [("sum by (state) (chainfleet_jobs)", "{{state}}")], "none", "Jobs that are not deleted.",
               "FAILED grows.", stacked=True),
        curves("Chains by state", [("sum by (state) (chainfleet_chains)", "{{state}}")], "none", "Chains of these jobs.",
               "DIVERGED or FAILED grows.", stacked=True),
        curves("Leases", [(per_second("chainfleet_leases_granted_total"), "granted"),
                          (per_second("chainfleet_leases_ended_total", by="cause"), "ended: {{cause}}")], "cps",
               "Leases granted, and those that ended before their chain did.", "ended: lost or hung above 0: workers die, hang or are cut off."),
        curves("Scheduling delay", quantiles("chainfleet_scheduling_delay_seconds"), "s", "Time that a chain waited for its lease.",
               "a median of minutes: more chains than slots."),
        curves("Preemptions", [("sum(increase(chainfleet_preemptions_total[$__rate_interval]))", "chains")], "none",
               "Chains preempted by a chain of a higher tier.", "all the time: low tiers never get far.", width=12),
        curves("Beyond the cap of 512 series", [("sum(chainfleet_chains_without_series)", "chains"), ("sum(chainfleet_jobs_without_series)", "jobs"),
                                                ("sum(chainfleet_means_without_series)", "means of chains"),
                                                ("sum(chainfleet_points_without_series)", "points"),
                                                ("sum(chainfleet_workers_without_series)", "workers")], "none",
               "How many chains, jobs, points of sweeps and workers have no series of their own: dashboards show at most 512 of each.",
               "above 0: a curve may be missing from the other panels; ask the command line.", width=12)]
    jobs = table("Jobs that are not over", ["job"], [
        ("max by (job) (chainfleet_job_progress_ratio)", "progress", "percentunit"),
        ("max by (job) (chainfleet_job_running_chains)", "running", "none"),
        ("max by (job) (chainfleet_job_diverged_chains)", "diverged", "none"),
        ("max by (job) (chainfleet_job_draws)", "draws", "short"),
        ("max by (job) (chainfleet_job_rhat_max)", "R-hat", "none"),
        ("min by (job) (chainfleet_job_ess_bulk_min)", "ESS", "short")],
        "Each job, its chains and how far they agree; at most 512 jobs.", "running 0 while slots are free; diverged above 0; R-hat above 1.1 near the end.")
    return dashboard("chainfleet-fleet", "chainfleet / Fleet", "Is the fleet at work, and for whom?", EVENTS, [],
                     [*now, section("Work"), *work, jobs])


def job():
    mine = '{job=~"$job"}'
    chain = "{{job}} {{chain}}"
    now = [
        figure("Progress", f"chainfleet_job_progress_ratio{mine}", "percentunit",
               "Fraction of the job's steps that are done, or of until.max_draws if that is larger.", "it stands still.",
               legend="{{job}}"),
        figure("Draws", f"chainfleet_job_draws{mine}", "short", "Committed draws.", "0 past the burn-in.", legend="{{job}}"),
        figure("Running chains", f"chainfleet_job_running_chains{mine}", "none", "Chains that are leased.", "0: they wait, or the job is paused.",
               below=[(1, WARNING)], legend="{{job}}"),
        figure("Lost chains", f"chainfleet_job_diverged_chains{mine}", "none", "Chains that diverged or failed.", "above 0: lower the step size.",
               [(1, BAD)], legend="{{job}}"),
        figure("R-hat", f"max by (job) (chainfleet_job_rhat_max{mine})", "none", "Largest rank-normalised split R-hat of the deciding quantities (for a network: its predictions).",
               "above 1.01 chains have not mixed, above 1.1 they disagree.", [(1.01, WARNING), (1.1, BAD)], legend="{{job}}", decimals=3),
        figure("Bulk ESS", f"min by (job) (chainfleet_job_ess_bulk_min{mine})", "short", "Smallest effective sample size of means.",
               "below 100 averages are not worth much; 400 is a fair aim.", below=[(100, BAD), (400, WARNING)], legend="{{job}}"),
        figure("Tail ESS", f"min by (job) (chainfleet_job_ess_tail_min{mine})", "short", "Smallest effective sample size of 5 % and 95 % quantiles.",
               "below 100, or far below bulk ESS: the tails are not explored.", below=[(100, BAD), (400, WARNING)], legend="{{job}}"),
        figure("ESS a second", f"min by (job) (chainfleet_job_ess_per_second{mine})", "none",
               "Smallest bulk ESS of a chain's newest 1,000 traced values, divided by the time that it took to produce them.",
               "it falls: the chains wait, or slow down.", legend="{{job}}", decimals=2)]
    convergence = [
        curves("R-hat", [(f"chainfleet_job_rhat_max{mine}", "{{job}} {{point}}"),
                         (f"chainfleet_job_nested_rhat_max{mine}", "{{job}} {{point}} nested")], "none",
               "Largest R-hat, of each point of a sweep; where chains share their starts, also the largest nested R-hat. Nested R-hat near 1: "
               "the chains have forgotten their starts. With M chains of each start and n independent draws of each chain, it falls to about "
               "sqrt(1 + 1 / (M n)).",
               "R-hat above 1.01 at the end; an R-hat that does not fall: separate modes.", limits=[(1.01, WARNING), (1.1, BAD)], lowest=1),
        curves("Effective sample size", [(f"chainfleet_job_ess_bulk_min{mine}", "{{job}} {{point}} bulk"),
                                         (f"chainfleet_job_ess_tail_min{mine}", "{{job}} {{point}} tail")], "short",
               "Smallest effective sample sizes, of each point of a sweep.", "flat while draws grow: the chain is stuck."),
        curves("ESS a second", [(f"chainfleet_job_ess_per_second{mine}", "{{job}} {{point}}")], "none",
               "Smallest bulk ESS divided by the time that it took to produce a chain's newest 1,000 traced values.",
               "it falls: the chains wait, or slow down.", log=True),  # thousands for small jobs
        curves("Draws", [(f"chainfleet_job_draws{mine}", "{{job}}")], "short", "Committed draws.", "flat while chains run and the burn-in is over."),
        curves("Progress", [(f"chainfleet_job_progress_ratio{mine}", "{{job}}")], "percentunit",
               "Fraction of the job's steps that are done, or of until.max_draws if that is larger.",
               "flat while chains run and no draws come; alert NoDrawProgress after 20 minutes.", highest=1),
        curves("Chains", [(f"chainfleet_job_running_chains{mine}", "{{job}} running"), (f"chainfleet_job_diverged_chains{mine}", "{{job}} lost")],
               "none", "Chains that are leased, and that diverged or failed.", "lost chains above 0; running chains that come and go.")]
    chains = [
        curves("Energy", [(f"chainfleet_chain_energy{mine}", chain)], "none", "U at the last step's batch.",
               "one curve far from the others: that chain is in another mode, or diverges.", lowest=None),
        curves("Energy of the job", [(f"chainfleet_job_energy_mean{mine}", "{{job}} mean"), (f"chainfleet_job_energy_max{mine}", "{{job}} largest")],
               "none", "Potential energy U over its running chains, full-data scale.", "it grows: the step size is too large.", lowest=None),
        curves("Acceptance", [(f"chainfleet_chain_acceptance_ratio{mine}", chain), (f"chainfleet_job_acceptance_ratio_mean{mine}", "{{job}} mean")], "percentunit",
               "Share of a Metropolis chain's proposals accepted.",
               "near 0 the step is too large, near 1 too small.", highest=1),
        curves("Step size", [(f"chainfleet_chain_step_size{mine}", chain), (f"chainfleet_job_step_size_mean{mine}", "{{job}} mean")], "none", "alpha of the last step: the schedule as it runs.",
               "not the schedule of the job file.", log=True),
        curves("Temperature", [(f"chainfleet_chain_temperature{mine}", chain), (f"chainfleet_job_temperature_mean{mine}", "{{job}} mean")], "none", "Temperature of the chain.", "not that of the job file.",
               log=True),
        curves("Distance to theta_a", [(f"chainfleet_chain_anchor_distance{mine}", chain), (f"chainfleet_job_anchor_distance_mean{mine}", "{{job}} mean")], "none",
               "|theta - theta_a| of Entropy-MCMC; 0 without an anchor.",
               "it grows without end: eta or the step size is too large."),
        curves("Draws of chains", [(f"chainfleet_chain_draws{mine}", chain)], "short", "Committed draws.",
               "one chain stays behind: its worker is slow or gone."),
        curves("Step of chains", [(f"chainfleet_chain_step{mine}", chain)], "short", "Newest known step.",
               "a curve that falls back often: leases are lost."),
        curves("Speed of chains", [(f"chainfleet_chain_steps_per_second{mine}", chain)], "ops", "Steps per second, measured by the worker.",
               "one far below the others: look at its worker.")]
    return dashboard("chainfleet-job", "chainfleet / Job", "Do the chains of a job agree, and how fast does it get there?", EVENTS, [JOB],
                     [*now, section("Convergence"), *convergence, section("Chains that run now, at most 512"), *chains])


def workers():
    mine = '{worker=~"$worker"}'
    now = [
        figure("Workers", f"count(chainfleet_fleet_worker_slots{mine}) or vector(0)", "none", "Workers that synchronised within their lease.",
               "0, or fewer than were started.", below=[(1, BAD)]),
        figure("Draining", f"sum(chainfleet_fleet_worker_draining{mine}) or vector(0)", "none", "Workers that hand their chains back.",
               "for longer than 5 minutes."),
        figure("Chains", f"sum(chainfleet_fleet_worker_chains{mine}) or vector(0)", "none", "Chains leased to them.", "0 while chains wait."),
        figure("Slots", f"sum(chainfleet_fleet_worker_slots{mine}) or vector(0)", "none", "Total chain slots of the workers.", "fewer than the devices could hold."),
        figure("Longest silence", f"max(chainfleet_fleet_worker_last_sync_seconds{mine})", "s", "Time since a worker last synchronised.",
               "above 10 s: twice the usual interval. At 15 s (--lease) it is not listed any more: alert WorkerLost.", SILENCES, decimals=1),
        figure("Chain steps a second", per_second("chainfleet_worker_chain_steps_total", mine) + " or vector(0)", "ops",
               "Sampler steps, one for each chain of a batch.",
               "0 while chains are leased."),
        figure("Not yet committed", f"max(chainfleet_worker_upload_queue_bytes{mine})", "bytes",
               "Draws and resume points in the memory of the fullest worker.",
               "it stays high: commits or uploads are slow or refused.", [(2**27, WARNING)]),
        figure("Memory", f"sum(chainfleet_process_resident_memory_bytes{mine} and on (instance) chainfleet_worker_chains)", "bytes",
               "Resident memory of the worker processes.", "it grows without end.")]
    listed = table("Workers", ["worker", "host"], [
        (f"max by (worker, host) (chainfleet_fleet_worker_{name}{mine})", heading, unit) for name, heading, unit in (
            ("chains", "chains", "none"), ("slots", "slots", "none"), ("last_sync_seconds", "last sync", "s"), ("draining", "draining", "none"))],
        "Workers that the coordinator knows; at most 512.", "a host that is missing; a last sync of more than 10 s.", width=12)
    device = curves("Device time", [(per_second("chainfleet_worker_step_duration_seconds_sum", mine, "worker"), "{{worker}} steps"),
                    (per_second("chainfleet_worker_shard_unit_duration_seconds_sum", mine, "worker"), "{{worker}} predictions")], "percentunit",
               "Share of the time in which the device steps chains, or answers shards of predictions.",
               "both low while the worker holds chains: it waits for commits or for data.", width=12, highest=1)
    work = [
        curves("Chain steps", [(per_second("chainfleet_worker_chain_steps_total", mine, "worker, device"), "{{worker}} {{device}}")], "ops",
               "Sampler steps, one for each chain of a batch.", "one worker far below others with the same job and device."),
        curves("Time of a step", quantiles("chainfleet_worker_step_duration_seconds", mine, ("worker",), legend="{{worker}}"), "s",
               "One step of a batch of chains.", "p99 far above the median: something else uses the device.", log=True),
        curves("Gradients", [(per_second("chainfleet_worker_gradient_evaluations_total", mine, "worker, device"), "{{worker}} {{device}}")], "ops",
               "Gradient evaluations of a chain's potential, each over one batch.", "far fewer for each chain step than the sampler needs."),
        curves("Proposals", [(per_second("chainfleet_worker_proposals_total", mine, "worker, outcome"), "{{worker}} {{outcome}}")], "ops",
               "Proposals of Metropolis chains.", "accepted at 0: the step size is too large.", stacked=True),
        curves("Chains held", [(f"chainfleet_worker_chains{mine}", "{{worker}}")], "none", "As the worker says.",
               "not what the coordinator leased to it for longer than a lease."),
        curves("Silence", [(f"chainfleet_fleet_worker_last_sync_seconds{mine}", "{{worker}}")], "s", "Time since the worker last synchronised.",
               "above 10 s: its network, or a host that swaps or hangs. A curve that ends there: it was silent for its lease of 15 s.", limits=SILENCES),
        curves("Draws", [(per_second("chainfleet_worker_draws_committed_total", mine, "worker"), "{{worker}}")], "cps",
               "Draws in commits that the server accepted.",
               "0 while it steps chains past their burn-in."),
        curves("Commits", [(per_second("chainfleet_worker_commits_total", mine, "worker"), "{{worker}}")], "cps", "Commits that the server accepted.",
               "0 while it steps chains.")]
    host = [
        curves("Uploads", [(per_second("chainfleet_worker_upload_bytes_total", mine, "worker"), "{{worker}}")], "binBps",
               "Bytes of segments and resume points in accepted commits.", "at the limit of its network: thin the draws or send fewer kinds."),
        curves("Not yet committed", [(f"chainfleet_worker_upload_queue_bytes{mine}", "{{worker}}")], "bytes", "Draws and resume points in memory.",
               "a plateau: the queue is full and chains wait for the store."),
        curves("Time of a prediction's part", quantiles("chainfleet_worker_shard_unit_duration_seconds", mine, ("worker",), legend="{{worker}}"), "s",
               "Device time of one part of a shard: its chains and kinds up to 8,192 rows x draws.", "far above other workers: its cache is cold or the device is busy.", log=True),
        curves("Processor", [(f"rate(chainfleet_process_cpu_seconds_total{mine}[$__rate_interval]) and on (instance) chainfleet_worker_chains",
                              "{{worker}}")],
               "percentunit", "Cores that the process uses; 100 % is one.", "far below its threads while it steps chains on a CPU."),
        curves("Memory", [(f"chainfleet_process_resident_memory_bytes{mine} and on (instance) chainfleet_worker_chains", "{{worker}}")], "bytes",
               "Resident memory.", "it grows without end."),
        curves("Open files", [(f"chainfleet_process_open_fds{mine} and on (instance) chainfleet_worker_chains", "{{worker}}")], "none",
               "File descriptors and sockets.", "it grows without end.")]
    gpu = "{{worker}} GPU {{gpu}}"
    gpus = [
        curves("GPU use", [(f"chainfleet_gpu_utilization_ratio{mine}", gpu)], "percentunit", "Share of the time in which a kernel ran, measured by NVML.",
               "low while the worker holds chains: its batches are small, or it waits for commits.", highest=1),
        curves("GPU memory", [(f"chainfleet_gpu_memory_used_bytes{mine}", gpu), (f"chainfleet_gpu_memory_size_bytes{mine}", gpu + " size")], "bytes",
               "Memory in use by all processes, and total memory.", "used at size: the next batch is split in half."),
        curves("GPU power", [(f"chainfleet_gpu_power_watts{mine}", gpu)], "watt", "Power that it draws.",
               "far below its neighbours' at the same work: it is throttled.")]
    return dashboard("chainfleet-workers", "chainfleet / Workers", "Are the devices busy, and does what they make arrive?", EVENTS, [WORKER],
                     [*now, listed, device, section("Work"), *work, section("Uploads, predictions and processes"), *host,
                      section("GPUs"), *gpus])


def predictions():
    asked = '{method=~".*/(Predict|ModelInfer)"}'
    evaluated = '{method=~".*/(Evaluate|StartEvaluation)"}'
    handled, took = "chainfleet_grpc_handled_total", "chainfleet_grpc_handling_seconds"
    faults = '{method=~".*/(Predict|ModelInfer)", code=~"UNKNOWN|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|INTERNAL|UNAVAILABLE|DATA_LOSS"}'
    errors = f"({per_second(handled, faults)} or vector(0)) / {per_second(handled, asked)}"
    unit = "chainfleet_worker_shard_unit_duration_seconds"
    stage, shard_stage, parts = "chainfleet_prediction_stage_seconds", "chainfleet_worker_shard_stage_seconds", '{stage!="total"}'
    batch = "chainfleet_prediction_batch"
    p50, p99 = (query for query, _ in quantiles(took, asked))
    now = [
        figure("Requests", per_second(handled, asked) + " or vector(0)", "reqps", "Predictions that were answered or refused.",
               "a fall to 0: clients do not get through.",
               width=4, decimals=1),
        figure("Errors", errors, "percentunit", "Share that failed for a reason that is not the client's.",
               "above 1 %; alert PredictErrors above 5 %.",
               [(0.01, WARNING), (0.05, BAD)], width=4, decimals=1),
        figure("Median latency", p50, "s", "Half of the predictions take longer.", "far above its value of yesterday.", width=4),
        figure("p99 latency", p99, "s", "One of a hundred takes longer.", "above 1 s; alert PredictLatencyHigh above 2 s.", [(1, WARNING), (2, BAD)],
               width=4),
        figure("Serving workers", "sum(chainfleet_serving_workers)", "none", "Workers with an open stream for predictions.",
               "0: every prediction fails as UNAVAILABLE.", below=[(1, BAD)], width=4),
        figure("Draws to average", "sum(chainfleet_draws)", "short", "Committed draws of all jobs.", "it falls without a delete.", width=4)]
    asked_panels = [
        curves("Requests by method", [(per_second(handled, asked, "method"), "{{method}}")], "reqps",
               "Predict of the command line and ModelInfer of the Open Inference Protocol.", "a fall to 0: clients do not get through."),
        curves("Requests by code", [(per_second(handled, asked, "code"), "{{code}}")], "reqps", "Status of the answers.",
               "anything but OK: INVALID_ARGUMENT and NOT_FOUND are the client's, the rest is ours.", stacked=True),
        curves("Share of errors", [(errors, "errors")], "percentunit", "Share of calls that failed for a reason that is not the client's.",
               "above 0 for long.", limits=[(0.01, WARNING), (0.05, BAD)], highest=0.1),
        curves("Latency", quantiles(took, asked, shares=(0.5, 0.9, 0.99)), "s", "Time from the start of the call to its status.",
               "p99 grows while p50 stays: shards wait for steps of large networks, or are retried."),
        curves("Latency by method", quantiles(took, asked, ("method",), shares=(0.99,), legend="{{method}}"), "s", "One of a hundred takes longer.",
               "one far above the other: its clients send larger batches."),
        curves("Evaluations", [(per_second(handled, evaluated, "method"), "{{method}}")], "reqps", "Calls that score a job on a whole data set.",
               "more than a few at a time: predictions wait behind them.")]
    stages = [
        curves("Time by stage", [(f"{per_second(stage + '_sum', parts, 'stage')} / {per_second(stage + '_count', parts, 'stage')}", "{{stage}}")], "s",
               "Mean of each stage: queue (for company and the batches before it), lookup (of the draws), workers (until all shards are back), "
               "reduce (their sums).", "queue: more workers, or a smaller --predict-max-delay; lookup: the state store is slow.", stacked=True),
        curves("p99 by stage", quantiles(stage, by=("stage",), shares=(0.99,), legend="{{stage}}"), "s", "One of a hundred takes longer.",
               "workers alone near total: look below at what the workers do.", log=True),
        curves("Time by stage in the workers", [(f"{per_second(shard_stage + '_sum', by='stage')} / {per_second(shard_stage + '_count', by='stage')}",
                                                 "{{stage}}")], "s",
               "Mean of each stage of a shard: load (draws and data), wait (for steps of chains and other shards), compute.",
               "load above compute: caches are cold or too small; wait: chains take the device, see --serve-share.", stacked=True),
        curves("Requests in a pass", mean_and_p99(batch + "_requests"), "none", "Requests in one batch of predictions.",
               "1 while many ask for the same draws: their shapes or versions differ."),
        curves("Rows of a pass", mean_and_p99(batch + "_rows"), "none", "Rows in one batch of predictions.", "at --predict-max-rows while requests queue up."),
        curves("Draws averaged", mean_and_p99("chainfleet_prediction_draws"), "none", "Draws averaged for one batch of predictions.",
               "it falls for a job whose draws grow: workers are lost, or calls end by their deadline.")]
    devices = [
        curves("Draws asked of the caches", [(per_second("chainfleet_worker_draw_cache_requests_total", by="outcome"), "{{outcome}}")], "cps",
               "Segments of draws that shards needed, in the cache of their worker or not.", "misses all the time: more draws are asked for than fit.", stacked=True),
        curves("Draws in the caches", [("sum by (worker) (chainfleet_worker_draw_cache_bytes)", "{{worker}}")], "bytes", "Draws kept in memory for predictions.",
               "at its bound of 512 MiB with misses: spread the jobs over more workers."),
        curves("Parts answered", [(per_second(unit + "_count", by="worker"), "{{worker}}")], "ops",
               "Chains and kinds of draws that workers averaged over.", "one worker has all of them: the others do not serve."),
        curves("Time of a part", quantiles(unit, by=("device",), legend="{{device}}"), "s", "Device time of one part of a shard: its chains and kinds up to 8,192 rows x draws.",
               "it grows with the same networks: the device is shared or hot.", log=True),
        curves("Device time for predictions", [(per_second(unit + "_sum", by="worker"), "{{worker}}")], "percentunit",
               "Share of the time in which the device answers predictions.", "at --serve-share (50 %) while chains run: requests queue up.", highest=1),
        curves("Workers", [("sum(chainfleet_serving_workers)", "serving"), ("sum(chainfleet_workers)", "all")], "none",
               "Workers with an open stream for predictions, of all.", "serving below all for more than seconds.", width=12),
        curves("Damaged draws met", [("sum(increase(chainfleet_corrupt_draws_total[$__rate_interval]))", "times")], "none",
               "Stored draws that a reader found damaged or missing.", "above 0: look at the disk; alert DrawsCorrupt.", width=12)]
    return dashboard("chainfleet-predictions", "chainfleet / Predictions", "Are predictions answered, rightly and in time?", EVENTS, [],
                     [*now, section("Requests"), *asked_panels, section("Stages"), *stages, section("In the workers"), *devices])


def store():
    handled, took = "chainfleet_grpc_handled_total", "chainfleet_grpc_handling_seconds"
    failed = '{code!="OK"}'
    unary = '{method!~".*/(Synchronize|WatchJob|ServeShards)"}'
    server = "and on (instance) chainfleet_leader"
    refused = '{outcome!~"OK|REPLAYED"}'
    free = "min(chainfleet_data_free_bytes / chainfleet_data_size_bytes)"
    now = [
        figure("Disk free", free, "percentunit", "Free share of the disk that holds the data directory.", "below 10 %; at 0 commits fail and chains wait.",
               below=[(0.1, BAD), (0.2, WARNING)], decimals=1),
        figure("Free bytes", "min(chainfleet_data_free_bytes)", "bytes", "Of the same disk.", "less than a day's draws."),
        figure("Corrupt segments", "sum(chainfleet_corrupt_segments)", "none", "Segments whose draws are left out because their bytes are wrong.",
               "above 0.",
               [(1, BAD)]),
        figure("Commits", per_second("chainfleet_commits_total"), "cps", "Commits of workers, accepted or refused.", "0 while chains run.",
               decimals=1),
        figure("Refused commits", f'{per_second("chainfleet_commits_total", refused)} + {per_second("chainfleet_uploads_refused_total")}', "cps",
               "Commits that changed nothing, and uploads for commits that were not taken.", "above 0 for long: workers are too slow for their leases, or the disk is full.",
               [(0.1, WARNING), (1, BAD)]),
        figure("p99 of a commit", quantiles("chainfleet_commit_duration_seconds", shares=(0.99,))[0][0], "s",
               "Time from the arrival of a commit to the store's answer.",
               "above 0.5 s: the disk or the database is slow.", [(0.5, WARNING), (2, BAD)]),
        figure("Calls", per_second(handled) + " or vector(0)", "reqps", "Finished RPCs of all methods.", "0: nobody gets through.", below=[(1e-6, BAD)],
               decimals=1),
        figure("Failed calls", per_second(handled, failed) + " or vector(0)", "reqps", "RPCs that did not end in OK.", "a large part of all calls.", decimals=2)]
    commits = [
        curves("Commits by outcome", [(per_second("chainfleet_commits_total", by="outcome"), "{{outcome}}"),
                                      (per_second("chainfleet_uploads_refused_total", by="outcome"), "upload: {{outcome}}")], "cps",
               "OK, REPLAYED (the commit was there already), or the reason why the commit or its upload was refused.", "LEASE_FENCED again and again; DISK_FULL at all.", stacked=True),
        curves("Time of a commit", quantiles("chainfleet_commit_duration_seconds", shares=(0.5, 0.9, 0.99)), "s",
               "Time from the arrival of a commit to the store's answer.",
               "it grows with the load: the disk or the database is at its limit."),
        curves("Bytes committed", [(per_second("chainfleet_committed_bytes_total"), "bytes")], "binBps",
               "Segments and resume points in accepted commits.",
               "so much that the disk is full before the jobs are done."),
        curves("Draws stored", [("sum(chainfleet_draws)", "draws")], "short", "Committed draws of all jobs that are not deleted.",
               "it falls without a delete."),
        curves("Disk", [("max(chainfleet_data_size_bytes)", "size"), ("min(chainfleet_data_free_bytes)", "free")], "bytes",
               "The disk that holds the data directory.", "free goes to 0; alert StoreNearlyFull below 10 %."),
        curves("Damaged draws", [("sum(chainfleet_corrupt_segments)", "segments left out"),
                                 ("sum(increase(chainfleet_corrupt_draws_total[$__rate_interval]))", "times met")], "none",
               "Segments marked corrupt, and damaged objects found.", "above 0: look at the disk and put the bytes back.")]
    calls = [
        curves("Calls by method", [(per_second(handled, by="method"), "{{method}}")], "reqps", "Finished RPCs.",
               "one method far above what it was: a client in a loop."),
        curves("Failed calls", [(per_second(handled, failed, "method, code"), "{{method}} {{code}}")], "reqps", "RPCs that did not end in OK.",
               "UNAVAILABLE, INTERNAL or DEADLINE_EXCEEDED; UNAUTHENTICATED: somebody has a wrong token."),
        curves("p99 of calls", quantiles(took, unary, ("method",), shares=(0.99,), legend="{{method}}"), "s",
               "One of a hundred takes longer; without calls that are held on purpose.", "seconds for anything but Evaluate, PutDataset and PutModel.", log=True)]
    process = [
        curves("Leader", [("chainfleet_leader", "{{instance}}")], "none", "1 for the coordinator that leads.", "two at 1, or none.", highest=1),
        curves("Processor of the servers", [(f"rate(chainfleet_process_cpu_seconds_total[$__rate_interval]) {server}", "{{instance}}")],
               "percentunit",
               "Cores that the process uses; 100 % is one.", "at the number of its cores."),
        curves("Memory of the servers", [(f"chainfleet_process_resident_memory_bytes {server}", "{{instance}}")], "bytes", "Resident memory.",
               "it grows without end."),
        curves("Open files of the servers", [(f"chainfleet_process_open_fds {server}", "{{instance}}")], "none", "File descriptors and sockets.",
               "near the limit of the process (ulimit -n)."),
        table("Versions", ["program", "version"], [("count by (program, version) (chainfleet_build_info)", "processes", "none")],
              "Program versions that Prometheus scrapes.", "two versions of a program for longer than an upgrade takes.", width=16)]
    return dashboard("chainfleet-store", "chainfleet / Store and RPC", "Is what was sampled kept, and does the server answer?", EVENTS, [],
                     [*now, section("Commits and objects"), *commits, section("Calls"), *calls, section("Servers"), *process])


ALL = {"fleet": fleet, "job": job, "workers": workers, "predictions": predictions, "store": store}


def text_of(name):
    """The file's content."""
    return json.dumps(ALL[name](), indent=1) + "\n"


def main(arguments):
    folder = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "dashboards")
    os.makedirs(folder, exist_ok=True)
    for name in ALL:
        with open(os.path.join(folder, name + ".json"), "w") as f:
            f.write(text_of(name))


if __name__ == "__main__":
    main(sys.argv[1:])
