"""Models of few vectors against the exact SVM: the experiments of the subspace-pursuit paper, and ours."""
