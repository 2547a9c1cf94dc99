#!/bin/sh
# A sweep as one SLURM array: sh slurm.sh [FOLDER]
# Run it on a node that sees sbatch, in a folder that all nodes see under the same path.
set -eu
out=${1:-sweep}
partition=${PARTITION:-cpu}
cells="mechanism=noisy_gd,noisy_sgd,objective_perturbation epsilon=0.1,0.3,1,3,10 dataset.seed=0,1,2,3
    dataset=synthetic_logistic dataset.n=20000 dataset.p=20 trials=20"

# what it needs; nothing is loaded or run
dperm run -m $cells workers=20 --cfg preflight

# SBATCH=no stops here, to try the words without a cluster
test "${SBATCH:-yes}" = yes || exit 0

# at most 20 jobs of two hours; the same line again goes on where this one ended
dperm run -m $cells backend=submitit workers=20 \
    "slurm={partition: $partition, minutes: 120, memory: 4GB, cores: 1}" out="$out"

# every record's checksum and every epsilon, computed anew
dperm verify "$out"
dperm report "$out" columns=mechanism,epsilon,excess_risk,band
