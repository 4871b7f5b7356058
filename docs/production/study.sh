#!/bin/sh
# A study of five parties on bundled data, from nothing: keys, roster, plan, folders, ledgers, certificates. Each step is
# what a person does; here one machine does all of them. The first word is the host by which parties reach the server.
set -eu
privstats identity new server.pem
for party in 1 2 3 4 5; do
  privstats identity new "party$party.pem"
done
cat > plan.toml <<'PLAN'
version = 1

[schema]
task = "classes"
classes = 10
features = 64
statistics = "NAB"
clip_norm = 1.0

[[schema.transform]]
kind = "centre-rows"

[[schema.transform]]
kind = "unit-norm"

[cohort]
clients = 5
min_survivors = 3
max_records = 2000

[privacy]
model = "distributed"
unit = "record"
adjacency = "add-remove"
epsilon = 8.0
delta = 1e-5
PLAN
privstats roster make roster.toml --label digits --server server.pub --plan plan.toml \
  one=party1.pub two=party2.pub three=party3.pub four=party4.pub five=party5.pub
privstats flower new plan.toml study --roster roster.toml
mv server.pem study/host/identity.pem
for party in 1 2 3 4 5; do
  cp -R study/party "party$party"
  mv "party$party.pem" "party$party/identity.pem"
  cat > "party$party/records.py" <<RECORDS
from sklearn.datasets import load_digits


def load():
    X, y = load_digits(return_X_y=True)
    return X[$party - 1 :: 5] / 16, y[$party - 1 :: 5]
RECORDS
  privstats ledger open "party$party/ledger"
  privstats ledger cap "party$party/ledger" digits --unit record --adjacency add-remove --epsilon 8 --delta 1e-5
  privstats flower key "party$party.node"
done
privstats flower certificates certificates --host "$1"
