// The table of mergers, and what tests ask of the search.
#include "budget/merging.h"

#include "simd/extremes.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// A light point beside a heavy one; t, u kappa to first order, saves 2 u^2 kappa^2 |log kappa|.
TableEntry light_entry(double kappa) {
    const double log_kappa = log(most(kappa, 1e-300));
    return {sqrt(most(0.0, 1.0 - kappa * kappa * (1.0 - 2.0 * log_kappa))), 0.0};
}

TableEntry table_entry(double u, double kappa) {
    if (fabs(u) < 1e-9) return light_entry(kappa);
    const double a = fabs(u), b = 1.0 - u, cosine = u > 0.0 ? 1.0 : -1.0;
    const MergePlace best = golden_section(a, b, cosine, log2(most(kappa, 1e-300)));
    const double loss = a * a + b * b + 2.0 * cosine * a * b * kappa - best.kept;
    return {sqrt(most(0.0, loss)) / a, best.place};
}

}  // namespace

// The root of the loss is nearly linear in kappa, down to 0 at kappa = 1.
int32_t fill_merge_table(struct slimsvm_fill_merge_table_call* call) {
    if (call->lo < 0 || call->lo > call->hi || call->hi > NEARNESSES + 1) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t j = call->lo; j < call->hi; ++j)
        for (int64_t i = 0; i <= SHARES; ++i) {
            const double u = LEAST_SHARE + (MOST_SHARE - LEAST_SHARE) * double(i) / double(SHARES);
            const TableEntry entry = table_entry(u, double(j) / double(NEARNESSES));
            float* cell = call->table + 2 * (i * (NEARNESSES + 1) + j);
            cell[0] = float(entry.loss);
            cell[1] = float(entry.place);
        }
    return SLIMSVM_OK;
}

int32_t merge_pairs(struct slimsvm_merge_pairs_call* call) {
    for (int64_t i = 0; i < call->n; ++i) {
        const double a = call->a[i], b = call->b[i], cosine = call->cosine[i], exponent = call->exponent[i];
        const double side = cosine > 0.0 ? 1.0 : -1.0, kappa = exp2_of(exponent);
        const MergePlace best = golden_section(a, b, cosine, exponent);
        const TableEntry entry = look_up(call->table, side * a / (side * a + b), kappa);
        const Shares shares = polished(side * a, b, exponent, entry.place);
        call->place[i] = best.place;
        call->kept[i] = best.kept;
        call->loss[i] = entry.loss;
        call->polished[3 * i] = shares.place;
        call->polished[3 * i + 1] = shares.from_b;
        call->polished[3 * i + 2] = shares.from_a;
        call->light[i] = light_loss(kappa);
        call->nearness[i] = least_nearness(call->light[i]);
    }
    return SLIMSVM_OK;
}

namespace {

template <class T>
void greatest_two_of(struct slimsvm_greatest_two_call& call) {
    const GreatestTwo<T> found = greatest_two(static_cast<const T*>(call.values), call.n);
    call.place = found.place;
    call.other = double(found.other);
}

}  // namespace

int32_t greatest_two(struct slimsvm_greatest_two_call* call) {
    const int64_t panel = call->real_size == 4 ? PANEL<float> : PANEL<double>;
    if (call->n < 1 || divide_up(call->n, panel) * panel > call->n_values) return SLIMSVM_BAD_ARGUMENT;
    call->real_size == 4 ? greatest_two_of<float>(*call) : greatest_two_of<double>(*call);
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
