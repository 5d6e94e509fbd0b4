#include "client/cli/verbs/verbs.h"

namespace chainfleet {

void AddAllVerbs(CLI::App* program, Invocation* run) {
  for (const auto add :
       {AddUp,      AddDown,     AddSubmit, AddGet,     AddDescribe, AddLogs,    AddWatch,     AddWait,
        AddIntents, AddScale,    AddDelete, AddDataset, AddModel,    AddImport,  AddVersion,   AddAlias,
        AddPredict, AddEvaluate, AddReport, AddExport,  AddDrain,    AddDoctor,  AddContext,   AddPki,
        AddToken,   AddWhoami,   AddAudit,  AddVerify,  AddBackup,   AddRestore, AddCompletion}) {
    add(program, run);
  }
}

}  // namespace chainfleet
