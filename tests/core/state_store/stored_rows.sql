
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.aliases (
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    job text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL
);

CREATE TABLE public.chains (
    job text NOT NULL COLLATE pg_catalog."C",
    chain bigint NOT NULL,
    state bigint NOT NULL,
    lease_epoch bigint NOT NULL,
    worker text NOT NULL,
    incarnation text NOT NULL,
    lease_committed bigint NOT NULL,
    attempts bigint NOT NULL,
    step bigint NOT NULL,
    num_draws bigint NOT NULL,
    last_digest text NOT NULL,
    resume_sha256 text NOT NULL,
    reason text NOT NULL,
    crashes bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.datasets (
    name text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);

CREATE TABLE public.evaluations (
    sequence bigint NOT NULL,
    id text NOT NULL,
    job text NOT NULL COLLATE pg_catalog."C",
    tenant text NOT NULL,
    request_id text,
    request bytea NOT NULL,
    state bigint NOT NULL,
    error_code bigint DEFAULT 0 NOT NULL,
    error_reason text DEFAULT ''::text NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    created_ns bigint NOT NULL,
    finished_ns bigint,
    result bytea,
    version bigint DEFAULT 0 NOT NULL
);

ALTER TABLE public.evaluations ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.evaluations_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.expired (
    ticket bigint NOT NULL,
    job text NOT NULL COLLATE pg_catalog."C",
    chain bigint NOT NULL,
    object text NOT NULL
);

ALTER TABLE public.expired ALTER COLUMN ticket ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.expired_ticket_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.findings (
    job text NOT NULL COLLATE pg_catalog."C",
    part text NOT NULL COLLATE pg_catalog."C",
    body bytea NOT NULL
);

CREATE TABLE public.former_incarnations (
    incarnation text NOT NULL
);

CREATE TABLE public.garbage (
    object text NOT NULL COLLATE pg_catalog."C"
);

CREATE TABLE public.jobs (
    sequence bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    request_id text,
    dataset text,
    plan text NOT NULL,
    intent bigint NOT NULL,
    created_ns bigint NOT NULL,
    finished_ns bigint,
    purged bigint DEFAULT 0 NOT NULL,
    module text,
    tenant text DEFAULT 'default'::text NOT NULL,
    last_version bigint DEFAULT 0 NOT NULL,
    stopped text DEFAULT '[]'::text NOT NULL,
    asked_chains bigint DEFAULT 0 NOT NULL
);

ALTER TABLE public.jobs ALTER COLUMN sequence ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_sequence_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.leader (
    generation bigint NOT NULL,
    address text NOT NULL,
    backend_pid integer NOT NULL,
    renewed_at timestamp with time zone NOT NULL
);

CREATE TABLE public.models (
    name text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL
);

CREATE TABLE public.resume_points (
    job text NOT NULL COLLATE pg_catalog."C",
    chain bigint NOT NULL,
    step bigint NOT NULL,
    sha256 text NOT NULL,
    bytes bytea NOT NULL,
    object text
);

CREATE TABLE public.segments (
    job text NOT NULL COLLATE pg_catalog."C",
    chain bigint NOT NULL,
    first_index bigint NOT NULL,
    digest text NOT NULL,
    object text NOT NULL,
    record text NOT NULL,
    corrupt bigint DEFAULT 0 NOT NULL,
    deleted bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.snapshots (
    job text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    draws_of_chain text NOT NULL,
    created_ns bigint NOT NULL
);

CREATE TABLE public.store (
    incarnation text NOT NULL,
    schema_version bigint NOT NULL,
    objects_id text DEFAULT ''::text NOT NULL,
    objects_in text DEFAULT ''::text NOT NULL
);

CREATE TABLE public.sweeps (
    ticket bigint NOT NULL,
    job text NOT NULL COLLATE pg_catalog."C",
    chain bigint NOT NULL
);

ALTER TABLE public.sweeps ALTER COLUMN ticket ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.sweeps_ticket_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.uploads (
    upload text NOT NULL,
    object text NOT NULL
);

INSERT INTO public.aliases VALUES ('vision', 'champion', 'job-swept', 1);

INSERT INTO public.chains VALUES ('job-swept', 2, 0, 1048576, '', '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', '', 0);
INSERT INTO public.chains VALUES ('job-swept', 3, 0, 1048576, '', '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', '', 0);
INSERT INTO public.chains VALUES ('job-swept', 1, 1, 1048577, 'w1', 'w1-life', 1, 0, 2, 2, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3002', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1002', '', 0);
INSERT INTO public.chains VALUES ('job-swept', 0, 0, 1048578, 'w1', 'w1-life', 0, 1, 3, 3, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3003', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3', 'worker lost', 1);
INSERT INTO public.chains VALUES ('job-layered', 5, 0, 1048576, '', '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', '', 0);
INSERT INTO public.chains VALUES ('job-layered', 0, 4, 1048577, 'w1', 'w1-life', 1, 0, 1, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1', 'energy is NaN', 0);
INSERT INTO public.chains VALUES ('job-layered', 1, 2, 1048577, 'w1', 'w1-life', 1, 0, 1, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1', '', 0);
INSERT INTO public.chains VALUES ('job-layered', 2, 0, 1048577, '', '', 1, 0, 1, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1', '', 0);
INSERT INTO public.chains VALUES ('job-layered', 3, 3, 1048576, '', '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', 'no worker can run it', 0);
INSERT INTO public.chains VALUES ('job-layered', 4, 2, 1048576, '', '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', 'enough', 0);
INSERT INTO public.chains VALUES ('job-ended', 0, 5, 1048576, '', '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000', '', '', 0);

INSERT INTO public.datasets VALUES ('digits', '{"created_at_ns":1700000002000000014,"digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","input_shape":[1,2,2],"input_type":0,"name":"digits","normalisation":{"mean":[0.5],"stddev":[0.25]},"num_classes":10,"num_rows":100,"shards":[{"first_row":0,"num_rows":100,"object":{"name":"shard-0","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa8","size_bytes":123}}],"target_type":0,"target_units":{"mean":0.0,"stddev":1.0},"tenant":"default"}');
INSERT INTO public.datasets VALUES ('numbers', '{"created_at_ns":1700000004000000028,"digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","input_shape":[3],"input_type":1,"name":"numbers","normalisation":{"mean":[],"stddev":[]},"num_classes":0,"num_rows":100,"shards":[{"first_row":0,"num_rows":100,"object":{"name":"shard-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa8","size_bytes":123}}],"target_type":1,"target_units":{"mean":0.30000000000000004,"stddev":1e-300},"tenant":"vision"}');

INSERT INTO public.evaluations OVERRIDING SYSTEM VALUE VALUES (1, 'running', 'job-swept', 'vision', 'request-running', '\x61736b656400ff', 1, 0, '', '', 1700000046000000322, NULL, NULL, 1);
INSERT INTO public.evaluations OVERRIDING SYSTEM VALUE VALUES (2, 'succeeded', 'job-swept', 'vision', 'request-succeeded', '\x61736b656400ff', 2, 0, '', '', 1700000047000000329, 1700000050000000350, '\x00666f756e64', 0);
INSERT INTO public.evaluations OVERRIDING SYSTEM VALUE VALUES (3, 'failed', 'job-swept', 'vision', 'request-failed', '\x61736b656400ff', 3, 14, 'NO_WORKERS', 'no worker', 1700000048000000336, 1700000051000000357, '\x', 0);
INSERT INTO public.evaluations OVERRIDING SYSTEM VALUE VALUES (4, 'cancelled', 'job-swept', 'vision', NULL, '\x61736b656400ff', 4, 0, '', '', 1700000049000000343, 1700000052000000364, '\x', 0);

INSERT INTO public.expired OVERRIDING SYSTEM VALUE VALUES (2, 'job-swept', 0, 'job-swept/0-3');

INSERT INTO public.findings VALUES ('job-ended', 'traces', '\x00ff206279746573');
INSERT INTO public.findings VALUES ('job-ended', 'warnings', '\x');

INSERT INTO public.former_incarnations VALUES ('incarnation-1');

INSERT INTO public.garbage VALUES ('let-go');
INSERT INTO public.garbage VALUES ('resume-job-swept/0-1');
INSERT INTO public.garbage VALUES ('resume-job-swept/1-1');
INSERT INTO public.garbage VALUES ('job-swept/0-2');

INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (2, 'job-layered', NULL, 'digits', '{"dataset":{"created_at_ns":0,"digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","input_shape":[1,2,2],"input_type":0,"name":"digits","normalisation":{"mean":[0.5],"stddev":[0.25]},"num_classes":10,"num_rows":100,"shards":[{"first_row":0,"num_rows":100,"object":{"name":"shard-0","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa8","size_bytes":123}}],"target_type":0,"target_units":{"mean":0.0,"stddev":1.0},"tenant":"default"},"job":"job-layered","normalisation":{"mean":[],"stddev":[]},"spec":{"batch_size":128,"burn_in":{"steps":3},"chains":6,"collect":{"every_steps":2,"kinds":[],"segment_draws":0},"dataset":"digits","minibatches":0,"model":{"layers":[{"residual":{"branch":[{"conv":{"bias":false,"groups":1,"kernel":3,"out_channels":4,"padding":0,"stride":1}},{"batch_norm":{"epsilon":1e-05}},{"frn":{"epsilon":0.5,"threshold":false}}],"shortcut":[{"max_pool":{"padding":1,"size":3,"stride":2}}]}},{"concat":{"branch":[{"conv":{"bias":false,"groups":1,"kernel":3,"out_channels":4,"padding":0,"stride":1}},{"batch_norm":{"epsilon":1e-05}},{"frn":{"epsilon":0.5,"threshold":false}}]}},{"dropout":{"rate":0.25}},{"linear":{"bias":true,"outputs":7}}]},"name":"job","num_steps":100,"precision":"float32","prior":{"gaussian":{"layers":{},"precision":0.0}},"resume_point_every_steps":0,"sampler":{"sgld":{"gradient_noise":0.0,"noise_free_fraction":0.0}},"schedule":{"constant":{"value":0.1}},"scheduling":{"priority":"normal"},"seed":0,"step_scale":0,"temperature":1.0},"target_units":{"mean":0.0,"stddev":1.0}}', 0, 1700000011000000077, NULL, 0, NULL, 'default', 1048576, '[]', 4);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (4, 'job-gone', 'r2', NULL, '{"job":"job-gone","normalisation":{"mean":[],"stddev":[]},"spec":{"batch_size":128,"burn_in":{},"chains":1,"collect":{"kinds":[],"segment_draws":0},"dataset":"","minibatches":0,"model":{"gaussian":{"covariance":[],"dimension":2,"mean":[],"precision":1.0}},"name":"job","num_steps":100,"precision":"float32","prior":{"gaussian":{"layers":{},"precision":0.0}},"resume_point_every_steps":0,"sampler":{"sgld":{"gradient_noise":0.0,"noise_free_fraction":0.0}},"schedule":{"constant":{"value":0.1}},"scheduling":{"priority":"normal"},"seed":0,"step_scale":0,"temperature":1.0},"target_units":{"mean":0.0,"stddev":1.0}}', 4, 1700000013000000091, 1700000053000000371, 1, NULL, 'default', 1048576, '[]', 0);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (3, 'job-ended', 'r1', NULL, '{"job":"job-ended","normalisation":{"mean":[],"stddev":[]},"spec":{"batch_size":128,"burn_in":{},"chains":1,"collect":{"kinds":[],"segment_draws":0},"dataset":"","minibatches":0,"model":{"gaussian":{"covariance":[],"dimension":2,"mean":[],"precision":1.0}},"name":"job","num_steps":100,"precision":"float32","prior":{"gaussian":{"layers":{},"precision":0.0}},"resume_point_every_steps":0,"sampler":{"sgld":{"gradient_noise":0.0,"noise_free_fraction":0.0}},"schedule":{"constant":{"value":0.1}},"scheduling":{"priority":"normal"},"seed":0,"step_scale":0,"temperature":1.0},"target_units":{"mean":0.0,"stddev":1.0}}', 3, 1700000012000000084, 1700000044000000308, 0, NULL, 'default', 1048576, '[]', 0);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (1, 'job-swept', 'r1', 'numbers', '{"dataset":{"created_at_ns":0,"digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","input_shape":[3],"input_type":1,"name":"numbers","normalisation":{"mean":[],"stddev":[]},"num_classes":0,"num_rows":100,"shards":[{"first_row":0,"num_rows":100,"object":{"name":"shard-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa8","size_bytes":123}}],"target_type":1,"target_units":{"mean":0.30000000000000004,"stddev":1e-300},"tenant":"vision"},"job":"job-swept","module":{"created_at_ns":9000000000,"name":"mine","object":{"name":"model-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3","size_bytes":12},"tenant":"vision"},"normalisation":{"mean":[0.1,0.2],"stddev":[0.3,0.4]},"spec":{"augmentation":{"crop_padding":4,"flip":true},"batch_size":128,"burn_in":{"cycles":2},"chains":2,"collect":{"kinds":[0,1],"last_epochs_of_cycle":1,"segment_draws":5},"dataset":"numbers","init":{"perturb":0.001,"theta":[0.30000000000000004,-7.0]},"likelihood":{"heteroscedastic_gaussian":{}},"minibatches":1,"model":{"torchscript":"mine"},"name":"job","num_epochs":12,"precision":"tf32","prior":{"gaussian":{"layers":{},"precision":25.0}},"resume_point_every_steps":0,"sampler":{"emcmc":{"anchor_decay":false,"eta":0.30000000000000004,"noise_free_fraction":0.0}},"schedule":{"cyclical":{"cycles":4,"final":1e-300,"initial":0.2}},"scheduling":{"priority":"normal"},"seed":18446744073709551615,"standardize":{"inputs":false,"targets":true},"step_scale":1,"sweep":{"eta":[7.0],"friction":[],"learning_rate":[],"prior_precision":[],"rho":[],"step_size":[],"temperature":[0.30000000000000004,1.0]},"temperature":0.0001,"trace_every":5,"until":{"ess_above":0.30000000000000004,"max_draws":7,"rhat_below":1.01}},"target_units":{"mean":3.0,"stddev":2.0}}', 1, 1700000010000000070, NULL, 0, 'mine', 'vision', 1048579, '[[1,"R-hat 1.005"]]', 0);

INSERT INTO public.leader VALUES (1048578, 'here:7400', 0, '2026-11-25 07:49:36.461025+00');

INSERT INTO public.models VALUES ('mine', '{"created_at_ns":1700000006000000042,"name":"mine","object":{"name":"model-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3","size_bytes":12},"tenant":"vision"}');

INSERT INTO public.resume_points VALUES ('job-swept', 1, 2, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1002', '\x737461746500ff', NULL);
INSERT INTO public.resume_points VALUES ('job-swept', 0, 3, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3', '\x', '{"name":"resume-job-swept/0-3","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3","size_bytes":9}');
INSERT INTO public.resume_points VALUES ('job-layered', 0, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1', '\x', '{"name":"resume-job-layered/0-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1","size_bytes":9}');
INSERT INTO public.resume_points VALUES ('job-layered', 1, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1', '\x', '{"name":"resume-job-layered/1-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1","size_bytes":9}');
INSERT INTO public.resume_points VALUES ('job-layered', 2, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1', '\x', '{"name":"resume-job-layered/2-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1","size_bytes":9}');

INSERT INTO public.segments VALUES ('job-swept', 0, 0, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'job-swept/0-1', '{"committed_at_ns":1700000015000000105,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","first_index":0,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-swept/0-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"0000000000000000000000000000000000000000000000000000000000000000","steps":[1],"weights":[0.3333333333333333],"worker":"w1"}', 0, 0);
INSERT INTO public.segments VALUES ('job-swept', 1, 0, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'job-swept/1-1', '{"committed_at_ns":1700000017000000119,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","first_index":0,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-swept/1-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"0000000000000000000000000000000000000000000000000000000000000000","steps":[1],"weights":[0.3333333333333333],"worker":"w1"}', 0, 0);
INSERT INTO public.segments VALUES ('job-swept', 0, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3002', 'job-swept/0-2', '{"committed_at_ns":1700000020000000140,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3002","first_index":1,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-swept/0-2","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","steps":[2],"weights":[0.3333333333333333],"worker":"w1"}', 0, 1);
INSERT INTO public.segments VALUES ('job-swept', 0, 2, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3003', 'job-swept/0-3', '{"committed_at_ns":1700000023000000161,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3003","first_index":2,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-swept/0-3","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3002","steps":[3],"weights":[0.3333333333333333],"worker":"w1"}', 0, 1);
INSERT INTO public.segments VALUES ('job-swept', 1, 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3002', 'job-swept/1-2', '{"committed_at_ns":1700000021000000147,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3002","first_index":1,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-swept/1-2","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","steps":[2],"weights":[0.3333333333333333],"worker":"w1"}', 1, 0);
INSERT INTO public.segments VALUES ('job-layered', 0, 0, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'job-layered/0-1', '{"committed_at_ns":1700000038000000266,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","first_index":0,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-layered/0-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"0000000000000000000000000000000000000000000000000000000000000000","steps":[1],"weights":[0.3333333333333333],"worker":"w1"}', 0, 0);
INSERT INTO public.segments VALUES ('job-layered', 1, 0, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'job-layered/1-1', '{"committed_at_ns":1700000039000000273,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","first_index":0,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-layered/1-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"0000000000000000000000000000000000000000000000000000000000000000","steps":[1],"weights":[0.3333333333333333],"worker":"w1"}', 0, 0);
INSERT INTO public.segments VALUES ('job-layered', 2, 0, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001', 'job-layered/2-1', '{"committed_at_ns":1700000040000000280,"device_kind":"cpu","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3001","first_index":0,"host":"host","kinds":[0],"lease_epoch":1,"numerics_version":3,"object":{"name":"job-layered/2-1","sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa7","size_bytes":10},"parent_digest":"0000000000000000000000000000000000000000000000000000000000000000","steps":[1],"weights":[0.3333333333333333],"worker":"w1"}', 0, 0);

INSERT INTO public.snapshots VALUES ('job-swept', 1, '[1,1,0,0]', 1700000018000000126);
INSERT INTO public.snapshots VALUES ('job-swept', 2, '[2,2,0,0]', 1700000022000000154);

INSERT INTO public.store VALUES ('incarnation-2', 11, 'id-1', '/srv/blobs');

INSERT INTO public.sweeps OVERRIDING SYSTEM VALUE VALUES (2, 'job-layered', 0);
INSERT INTO public.sweeps OVERRIDING SYSTEM VALUE VALUES (3, 'job-layered', 1);
INSERT INTO public.sweeps OVERRIDING SYSTEM VALUE VALUES (4, 'job-swept', 0);

INSERT INTO public.uploads VALUES ('upload-5', 'half-written');

SELECT pg_catalog.setval('public.evaluations_sequence_seq', 4, true);

SELECT pg_catalog.setval('public.expired_ticket_seq', 2, true);

SELECT pg_catalog.setval('public.jobs_sequence_seq', 4, true);

SELECT pg_catalog.setval('public.sweeps_ticket_seq', 4, true);

ALTER TABLE ONLY public.aliases
    ADD CONSTRAINT aliases_pkey PRIMARY KEY (tenant, name);

ALTER TABLE ONLY public.chains
    ADD CONSTRAINT chains_pkey PRIMARY KEY (job, chain);

ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT datasets_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_id_key UNIQUE (id);

ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_pkey PRIMARY KEY (sequence);

ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_tenant_request_id_key UNIQUE (tenant, request_id);

ALTER TABLE ONLY public.expired
    ADD CONSTRAINT expired_pkey PRIMARY KEY (ticket);

ALTER TABLE ONLY public.findings
    ADD CONSTRAINT findings_pkey PRIMARY KEY (job, part);

ALTER TABLE ONLY public.garbage
    ADD CONSTRAINT garbage_pkey PRIMARY KEY (object);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_id_key UNIQUE (id);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (sequence);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_tenant_request_id_key UNIQUE (tenant, request_id);

ALTER TABLE ONLY public.leader
    ADD CONSTRAINT leader_pkey PRIMARY KEY (generation);

ALTER TABLE ONLY public.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.resume_points
    ADD CONSTRAINT resume_points_pkey PRIMARY KEY (job, chain);

ALTER TABLE ONLY public.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (job, chain, first_index);

ALTER TABLE ONLY public.snapshots
    ADD CONSTRAINT snapshots_pkey PRIMARY KEY (job, number);

ALTER TABLE ONLY public.sweeps
    ADD CONSTRAINT sweeps_job_chain_key UNIQUE (job, chain);

ALTER TABLE ONLY public.sweeps
    ADD CONSTRAINT sweeps_pkey PRIMARY KEY (ticket);

ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (upload, object);

CREATE INDEX aliases_by_job ON public.aliases USING btree (job);

CREATE INDEX corrupt_segments ON public.segments USING btree (job, chain, first_index) WHERE ((corrupt = 1) AND (deleted = 0));

CREATE INDEX evaluations_of_job ON public.evaluations USING btree (job, sequence);

CREATE INDEX expired_by_chain ON public.expired USING btree (job, chain);

CREATE INDEX jobs_by_dataset ON public.jobs USING btree (dataset) WHERE (dataset IS NOT NULL);

CREATE INDEX jobs_by_module ON public.jobs USING btree (module) WHERE (module IS NOT NULL);

CREATE INDEX segments_by_object ON public.segments USING btree (object);

CREATE INDEX uploads_by_object ON public.uploads USING btree (object);

