"""Runs moto's S3 on a free port until its standard input ends. Runs in .venv/s3, where moto is; not imported by tests.

Prints one JSON object: the port, and the only credentials that may write to the bucket ``answers``.
"""

import json
import os
import sys

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"  # the four below; from then on signatures and rights are checked

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
host, port = server.get_host_and_port()
of = {
    "endpoint_url": f"http://{host}:{port}",
    "region_name": "us-east-1",
    "aws_access_key_id": "nobody",
    "aws_secret_access_key": "nothing",
}
allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam = boto3.client("iam", **of)
iam.create_user(UserName="assay")
key = iam.create_access_key(UserName="assay")["AccessKey"]
iam.put_user_policy(UserName="assay", PolicyName="write", PolicyDocument=json.dumps(allow))
boto3.client("s3", **of).create_bucket(Bucket="answers")
print(json.dumps({"port": port, "id": key["AccessKeyId"], "secret": key["SecretAccessKey"]}), flush=True)
sys.stdin.read()
