"""What the estimators share.

automatic        what ``solver="auto"`` stands for
validation       checks of what users pass in
choosing         C and the metric, where the estimator chooses them itself
estimator_files  fitted estimators as files, and back (`slimsvm.load` and `slimsvm.save` are in `estimators.files`)
stream_files     streams of chunks in such files
checkpoint       a file after every iteration of a fit
path             a machine for every C and gamma of a grid
machine          parameters to a problem, a fit to attributes, prediction
ramp_machine     the same for ``loss="ramp"``
partial_fit      rows that come in chunks
stacking         lists of examples as one array of rows
pairwise         scores of each pair of classes
"""
