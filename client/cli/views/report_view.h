// Describes measurements of a job's chains for people, as ranges over the chains that have a number. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfleet/v1/jobs.pb.h"

namespace chainfleet {

// A point of a sweep: "1: eta=0.001".
std::string PointLabel(const v1::Job& job, int32_t point);

// How hot the chains are with their mini-batches' noise, or that it was not measured.
std::string DescribeHeat(const v1::Job& job);

// The curvature and the bound on the step size that follows; empty if it was not measured.
std::string DescribeCurvature(const v1::Job& job);

// "-812.4 to -811.9", of the chains of a Laplace approximation; "" of others.
std::string DescribeEvidence(const v1::Job& job);

// For chains that see energies on mini-batches: the noise, and whether it biases the law; empty for other chains.
std::string DescribeNoise(const v1::Job& job);

// "chain 2: ...", the first few; then a line that counts the rest.
std::vector<std::string> Warnings(const v1::Job& job);

}  // namespace chainfleet
