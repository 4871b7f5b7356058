#!/bin/sh
# On the server's machine, while `privstats flower serve` runs: register the nodes, start the session, show the release.
set -eu
FLWR_HOME=$PWD/study/host/.flower
export FLWR_HOME
until flwr supernode list study > /dev/null 2>&1; do
  sleep 1
done
mkdir -p nodes
for party in 1 2 3 4 5; do
  cp "party$party.node.pub" "nodes/party$party.pub"  # as the parties sent them
done
privstats flower register study/host nodes
flwr run study/app study --stream
privstats release show study/host/release.safetensors
