select
    account_id, effective_date, batch_id, status,
    {% for column in ['customer_id', 'broker_id', 'account_desc', 'tax_status'] %}
    {% if target.type == 'duckdb' %}last_value({{ column }} ignore nulls)
    {%- else %}last_value({{ column }}) ignore nulls{% endif %} over versions as {{ column }},
    {% endfor %}
    coalesce(lead(effective_date) over versions, date '9999-12-31') as end_date
from {{ ref('account_events') }}
window versions as (partition by account_id order by effective_date)
