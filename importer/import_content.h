// What import_graph does, for contents that are not a file's own.
#pragma once

#include "importer/import_graph.h"

namespace tandem::importer {

class AlgorithmImport;  // importer/training_info/algorithm_import.h

/// `algorithm`: null, or what reads the part of training_info's algorithm in a content of both; it
/// has it afterwards, unless there are problems.
ImportResult import_content(const OnnxFile::Content& file, const OperatorSet& operators,
                            const ImportOptions& options, AlgorithmImport* algorithm = nullptr);

}  // namespace tandem::importer
