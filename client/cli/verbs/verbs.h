// Every verb of the command line, one file each. Each function adds its verb to the program; `run` outlives it.
#pragma once

#include "CLI/CLI.hpp"
#include "client/cli/invocation.h"

namespace chainfleet {

void AddUp(CLI::App* program, Invocation* run);
void AddDown(CLI::App* program, Invocation* run);
void AddSubmit(CLI::App* program, Invocation* run);
void AddGet(CLI::App* program, Invocation* run);
void AddDescribe(CLI::App* program, Invocation* run);
void AddLogs(CLI::App* program, Invocation* run);
void AddWatch(CLI::App* program, Invocation* run);
void AddWait(CLI::App* program, Invocation* run);
void AddIntents(CLI::App* program, Invocation* run);  // pause, resume, abort, cancel
void AddScale(CLI::App* program, Invocation* run);
void AddDelete(CLI::App* program, Invocation* run);
void AddDataset(CLI::App* program, Invocation* run);
void AddDatasetGet(CLI::App* dataset, Invocation* run);  // below dataset
void AddModel(CLI::App* program, Invocation* run);
void AddImport(CLI::App* program, Invocation* run);
void AddVersion(CLI::App* program, Invocation* run);
void AddAlias(CLI::App* program, Invocation* run);
void AddPredict(CLI::App* program, Invocation* run);
void AddEvaluate(CLI::App* program, Invocation* run);
void AddReport(CLI::App* program, Invocation* run);
void AddExport(CLI::App* program, Invocation* run);
void AddDrain(CLI::App* program, Invocation* run);
void AddDoctor(CLI::App* program, Invocation* run);
void AddContext(CLI::App* program, Invocation* run);
void AddPki(CLI::App* program, Invocation* run);
void AddToken(CLI::App* program, Invocation* run);
void AddWhoami(CLI::App* program, Invocation* run);
void AddAudit(CLI::App* program, Invocation* run);
void AddVerify(CLI::App* program, Invocation* run);
void AddBackup(CLI::App* program, Invocation* run);
void AddRestore(CLI::App* program, Invocation* run);
void AddCompletion(CLI::App* program, Invocation* run);

// Adds all verbs.
void AddAllVerbs(CLI::App* program, Invocation* run);

}  // namespace chainfleet
