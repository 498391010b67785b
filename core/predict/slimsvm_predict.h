/* Predicts with a model that slimsvm trained: reads a .slim file and scores rows. C99; link with -lm -lpthread.
 *
 *     slimsvm_model* model = slimsvm_load("iris.slim");
 *     if (!model) { puts(slimsvm_last_error()); return 1; }
 *     const float x[4] = {5.1f, 3.5f, 1.4f, 0.2f};
 *     slimsvm_rows rows = {0};
 *     rows.values = x; rows.type = SLIMSVM_FLOAT32; rows.n_rows = 1; rows.n_features = 4;
 *     double prediction;
 *     if (slimsvm_predict(model, &rows, 1, &prediction)) { puts(slimsvm_last_error()); return 1; }
 *     puts(slimsvm_label_text(model, (int64_t)prediction));
 *     slimsvm_free(model);
 *
 * A model does not change once it is loaded: any number of threads may use it at a time. Nothing here ends the process,
 * prints, or keeps an address of the caller's. What a model's file holds is never executed, and a file may hold
 * anything: one that is no model is refused, and reading it takes memory in proportion to its size.
 */
#ifndef SLIMSVM_PREDICT_H
#define SLIMSVM_PREDICT_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) || defined(SLIMSVM_PREDICT_STATIC)
#define SLIMSVM_PREDICT_API
#else
#define SLIMSVM_PREDICT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slimsvm_model slimsvm_model;

/* What predictions come of, and what they are. */
#define SLIMSVM_BINARY 0     /* one score, positive for the second class: the place of a label */
#define SLIMSVM_CLASSES 1    /* a score for each class: the place of the label of the greatest */
#define SLIMSVM_PAIRS 2      /* a score for each pair of classes: the place of the label of most votes */
#define SLIMSVM_LABELS 3     /* a score for each label: 1 where it is positive, else 0 */
#define SLIMSVM_REGRESSION 4 /* the score */
#define SLIMSVM_ONE_CLASS 5  /* 1 inside, -1 outside */
#define SLIMSVM_ORDINAL 6    /* the place of the label of the greatest sum of (score - threshold) */
#define SLIMSVM_RANKING 7    /* the score, by which the rows of a query are sorted, falling */
#define SLIMSVM_SEQUENCES 8  /* a score for each label, and the place of each row's label in the best path (Viterbi) */
#define SLIMSVM_COUNTS 9     /* the exponential of each score */
#define SLIMSVM_TARGETS 10   /* each score */
#define SLIMSVM_QUANTILES 11 /* the scores in rising order */

#define SLIMSVM_FLOAT32 0
#define SLIMSVM_FLOAT64 1

#define SLIMSVM_DENSE 0
#define SLIMSVM_CSR32 1 /* columns and starts are int32_t */
#define SLIMSVM_CSR64 2 /* columns and starts are int64_t */

/* Rows to be scored. Dense ones lie one after another. Of CSR rows those of row i are the values starts[i], ...,
 * starts[i + 1] - 1; its columns rise, none stands twice. A structure of zeros and the fields that are needed will do.
 */
typedef struct {
    const void* values;
    const void* columns; /* CSR: columns of the values */
    const void* starts;  /* CSR: n_rows + 1 numbers */
    int32_t type;        /* SLIMSVM_FLOAT32 or SLIMSVM_FLOAT64 */
    int32_t form;        /* SLIMSVM_DENSE, SLIMSVM_CSR32 or SLIMSVM_CSR64 */
    int64_t n_rows;
    int64_t n_features;
    const int64_t* lengths; /* rows of each sequence, one after another; NULL: all are one. For SLIMSVM_SEQUENCES. */
    int64_t n_sequences;
} slimsvm_rows;

/* The model of a file, or of the bytes of one; NULL where there is none, and slimsvm_last_error says why. Nobody may
 * shorten the file while it is being loaded (writing another and renaming it, as slimsvm does, is fine): the pages of a
 * large one are mapped, not copied. */
SLIMSVM_PREDICT_API slimsvm_model* slimsvm_load(const char* path);
SLIMSVM_PREDICT_API slimsvm_model* slimsvm_load_memory(const void* bytes, size_t n_bytes);
SLIMSVM_PREDICT_API void slimsvm_free(slimsvm_model* model); /* NULL is allowed */

/* Why the last call of this thread that failed did so: a sentence, until the next one fails. */
SLIMSVM_PREDICT_API const char* slimsvm_last_error(void);

SLIMSVM_PREDICT_API int32_t slimsvm_kind(const slimsvm_model* model);
SLIMSVM_PREDICT_API int64_t slimsvm_n_features(const slimsvm_model* model);      /* of a row */
SLIMSVM_PREDICT_API int64_t slimsvm_n_vectors(const slimsvm_model* model);       /* 0: a product with weights */
SLIMSVM_PREDICT_API int64_t slimsvm_n_scores(const slimsvm_model* model);        /* of a row */
SLIMSVM_PREDICT_API int64_t slimsvm_n_predictions(const slimsvm_model* model);   /* of a row: 1, or several */
SLIMSVM_PREDICT_API int64_t slimsvm_n_probabilities(const slimsvm_model* model); /* of a row; 0: not calibrated */

/* Labels of classes: texts or numbers, 0 of them where predictions are no places of labels. Of numbers the text is
 * NULL, of texts and other places the number NaN. Truth values are 0 and 1. */
SLIMSVM_PREDICT_API int64_t slimsvm_n_labels(const slimsvm_model* model);
SLIMSVM_PREDICT_API const char* slimsvm_label_text(const slimsvm_model* model, int64_t place); /* UTF-8 */
SLIMSVM_PREDICT_API double slimsvm_label_number(const slimsvm_model* model, int64_t place);

/* Scores (n_rows, n_scores), the values of the estimator's decision_function (predictions where it has none).
 * n_threads: as many as may work on it, 1 for the calling one alone. Returns 0, or another number where nothing came of
 * it: slimsvm_last_error says why, and what `scores` holds is undefined. A row that is not finite is refused. */
SLIMSVM_PREDICT_API int slimsvm_scores(const slimsvm_model* model, const slimsvm_rows* rows, int32_t n_threads,
                                       double* scores);

/* Predictions (n_rows, n_predictions), as the kinds above say; otherwise as slimsvm_scores. */
SLIMSVM_PREDICT_API int slimsvm_predict(const slimsvm_model* model, const slimsvm_rows* rows, int32_t n_threads,
                                        double* predictions);

/* Probabilities (n_rows, n_probabilities) of the classes in the order of their labels, or for SLIMSVM_LABELS of each
 * label, as the estimator's predict_proba has them; a failure for a model that was not fitted with probability=True.
 * Otherwise as slimsvm_scores. */
SLIMSVM_PREDICT_API int slimsvm_probabilities(const slimsvm_model* model, const slimsvm_rows* rows, int32_t n_threads,
                                              double* probabilities);

#ifdef __cplusplus
}
#endif

#endif
