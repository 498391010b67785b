// The vectors of a file, as a model has them.
#pragma once

#include "predict/model.h"
#include "predict/model_file.h"

namespace slimsvm::predict {

// Takes the vectors, or the weights, for the n_vectors rows of `coef`; those of inner products times `factor`. False,
// with a message, where they do not fit the rest.
bool read_vectors(const ModelFile& file, int64_t n_vectors, double factor, Model& model);

}  // namespace slimsvm::predict
