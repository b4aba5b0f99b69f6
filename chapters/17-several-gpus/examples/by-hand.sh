#!/bin/sh
# Three processes on this machine, on emulated devices.
for rank in 0 1 2; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
        LINREC_DEVICE=simt target/release/examples/job &
done
wait
