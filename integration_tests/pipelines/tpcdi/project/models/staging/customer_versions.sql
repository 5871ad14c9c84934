-- each version has the newest value of each column
select
    customer_id, effective_date, batch_id, status,
    {% for column in ['tax_id', 'last_name', 'first_name', 'middle_name', 'gender', 'tier',
                      'dob', 'address_line1', 'address_line2', 'postal_code', 'city', 'state_prov', 'country',
                      'phone', 'email', 'lcl_tx_id', 'nat_tx_id'] %}
    {% if target.type == 'duckdb' %}last_value({{ column }} ignore nulls)
    {%- else %}last_value({{ column }}) ignore nulls{% endif %} over versions as {{ column }},
    {% endfor %}
    row_number() over versions as version,
    coalesce(lead(effective_date) over versions, date '9999-12-31') as end_date
from {{ ref('customer_events') }}
window versions as (partition by customer_id order by effective_date)
